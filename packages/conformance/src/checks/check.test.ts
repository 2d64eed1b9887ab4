import { describe, expect, it } from "vitest";
import { cleanUpBackend, FAMILIES } from "@turnout/core";
import type { BackendModule, Plain } from "@turnout/core";
import { withBackend } from "../runner/changed-subject.ts";
import { checkBackend } from "./check.ts";
import type { CreateFakeHost } from "../runner/fake-host.ts";
import type { ConformanceReport } from "./finding.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { createReferenceHost } from "../reference/reference-host.ts";
import type { ReferenceFacts, ReferenceObject, ReferenceStep, ReferenceWorld } from "../reference/reference-objects.ts";
import type { Scenario } from "../runner/scenario.ts";
import { addressesOf, service, slices } from "../runner/short.ts";

const WEB = service("web", { number: 1, ways: ["externalIP"] });
const BASIC: Scenario = {
  name: "a cluster IP",
  rules: ["R-22", "R-24"],
  steps: [
    {
      say: "two endpoints",
      put: [WEB, ...slices("web", ["pod-1-1", "pod-2-1"])],
      probes: [
        { from: "pod-1-2", to: "web clusterIP", sees: "pod-1-1 pod-2-1 saw pod-1-2" },
        { from: "pod-1-1", to: "web clusterIP", sees: "pod-1-1 saw node1, pod-2-1 saw pod-1-1" },
        { from: "client1", to: addressesOf(99, "clusterIP"), sees: "dropped" },
      ],
    },
    { say: "a restart", restart: true },
    { say: "none", put: slices("web", []), probes: [{ from: "node1", to: "web externalIP", sees: "refused" }] },
  ],
};
const AFFINE: Scenario = {
  name: "affinity and flows",
  rules: ["R-46", "R-41"],
  steps: [
    {
      say: "three endpoints",
      put: [
        service("web", { number: 1, spec: { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 3 } } } }),
        ...slices("web", ["pod-1-1", "pod-2-1", "pod-2-2"]),
      ],
      probes: [{ from: "client1", to: "web clusterIP", sees: "pod-1-1 pod-2-1 pod-2-2 saw node1", keep: "first" }],
    },
    {
      say: "soon",
      waitSeconds: 2,
      probes: [{ from: "client1", to: "web clusterIP", sees: "pod-1-1 pod-2-1 pod-2-2 saw node1", like: { kept: "first", goes: "same" } }],
      flows: [{ kept: "first", is: "remembered" }],
    },
    {
      say: "late",
      waitSeconds: 2,
      probes: [{ from: "client1", to: "web clusterIP", sees: "pod-1-1 pod-2-1 pod-2-2 saw node1", like: { kept: "first", goes: "free" } }],
    },
    { say: "gone", put: slices("web", ["pod-1-2"]), flows: [{ kept: "first", is: "forgotten" }] },
  ],
};

async function check(
  scenarios: readonly Scenario[],
  module: BackendModule = referenceBackend,
  host: CreateFakeHost = createReferenceHost,
): Promise<ConformanceReport> {
  return await checkBackend(module, host, scenarios);
}

/** BASIC with other words for one of its probes. */
function basicThatSees(sees: string): Scenario {
  const [first, ...rest] = BASIC.steps;
  return { ...BASIC, steps: [{ ...first, say: "two endpoints", probes: [{ from: "pod-1-2", to: "web clusterIP", sees }] }, ...rest] };
}

describe("what the kit says of a backend", () => {
  it("that is right: nothing, and how much it looked at", async () => {
    const { backend, findings, cells } = await check([BASIC, AFFINE]);
    expect([backend, findings]).toEqual(["reference", []]);
    expect(cells).toContainEqual({ rule: "R-22", family: "IPv6", protocol: "SCTP", probes: 4, findings: 0 });
    expect(cells).toHaveLength(4 * 6);
  });

  it("of words that say otherwise than the oracle: that the kit is wrong", async () => {
    const { findings } = await check([basicThatSees("pod-1-1 saw pod-1-2")]);
    expect(new Set(findings.map(({ kind, expected, got }) => `${kind}: ${expected}; ${got}`))).toEqual(
      new Set(["contract: words of the scenario: pod-1-1 saw pod-1-2; the oracle: pod-1-1 pod-2-1 saw pod-1-2"]),
    );
    expect(findings).toHaveLength(6);
  });

  it("that lacks a protocol: what it does not have is skipped with its reason", async () => {
    const module: BackendModule = { ...referenceBackend, capabilities: { ...referenceBackend.capabilities, SCTP: "not in the kernel" } };
    const { findings, cells } = await check([BASIC], module);
    expect(findings).toEqual([]);
    const skipped = cells.filter((cell) => cell.skipped !== undefined);
    expect(skipped).toHaveLength(4);
    expect(skipped[0]).toMatchObject({ protocol: "SCTP", probes: 0, skipped: "no SCTP: not in the kernel" });
  });

  it("whose probe finds that this host lacks a protocol: the same, and its report says so", async () => {
    const probe: typeof referenceBackend.probe = async (...args) => ({
      ...(await referenceBackend.probe(...args)),
      capabilities: { SCTP: "not in this kernel" },
    });
    const { findings, cells, abilities } = await check([BASIC], { ...referenceBackend, probe });
    expect(findings).toEqual([]);
    expect(cells.find(({ skipped }) => skipped !== undefined)).toMatchObject({ protocol: "SCTP", skipped: "no SCTP: not in this kernel" });
    expect(abilities.capabilities.SCTP).toBe("not in this kernel");
  });

  it("whose probe finds another variant than its module says: each packet that shows that it is not so", async () => {
    const probe: typeof referenceBackend.probe = async (...args) => ({
      ...(await referenceBackend.probe(...args)),
      variants: { unallocatedClusterIP: "pass" },
    });
    const { findings } = await check([BASIC], { ...referenceBackend, probe });
    expect(new Set(findings.map(({ expected, got }) => `${expected} ${got}`))).toEqual(new Set(["untouched dropped"]));
  });

  it("that is no module: each thing that is wrong, and nothing is played", async () => {
    const module = { ...referenceBackend, residence: "cloud", capabilities: { SCTP: false } } as unknown as BackendModule;
    const { findings, cells } = await check([BASIC], module);
    expect(findings.map(({ kind, scenario, got }) => [kind, scenario, got])).toEqual([
      ["contract", "the module", 'residence is "cloud", not "kernel" or "process"'],
      ["contract", "the module", "capabilities.SCTP is false, not true or a text that says why not"],
    ]);
    expect(cells).toEqual([]);
  });

  it("whose probe adds to its module: that", async () => {
    const probe: typeof referenceBackend.probe = async (...args) => ({
      ...(await referenceBackend.probe(...args)),
      capabilities: { SCTP: true },
    });
    const { findings } = await check([BASIC], {
      ...referenceBackend,
      capabilities: { ...referenceBackend.capabilities, SCTP: "never" },
      probe,
    });
    expect(findings.map(({ kind, what }) => [kind, what])).toEqual([["error", "the probe"]]);
    expect(findings[0]?.got).toContain("capabilities.SCTP is true, and the module refuses it: never");
  });

  it("that declares a variant it does not have: each packet that shows it", async () => {
    const module: BackendModule = { ...referenceBackend, variants: { ...referenceBackend.variants, unallocatedClusterIP: "pass" } };
    const { findings } = await check([BASIC], module);
    expect(new Set(findings.map(({ kind, expected, got, rules }) => `${kind} ${expected} ${got} ${rules.join()}`))).toEqual(
      new Set(["verdict untouched dropped R-48,R-62"]),
    );
  });

  it("that doesn't recognise what it made: the first field that differs, before and after", async () => {
    const { module, createFakeHost } = withBackend((inner) => ({
      async observe(signal) {
        const observed = await inner.observe(signal);
        const asText = (value: Plain): Plain =>
          typeof value === "object" && "affinitySeconds" in value ? { ...value, affinitySeconds: "0" } : value;
        const objects = new Map([...(observed?.objects ?? [])].map(([id, object]) => [id, { ...object, value: asText(object.value) }]));
        return { objects, lingering: [] };
      },
    }))({ module: referenceBackend, createFakeHost: createReferenceHost });
    const { findings } = await check([BASIC], module, createFakeHost);
    const first = findings.find(({ kind, scenario }) => kind === "not-idempotent" && scenario === BASIC.name);
    expect(first).toMatchObject({ rules: ["R-58"], what: "what a new process would change" });
    expect(first?.got).toContain('change destination 10.96.0.1 80/TCP (affinitySeconds: "0" → 0)');
  });

  it("whose dataplane lives and dies with its process: nothing, as it may forget", async () => {
    const module: BackendModule<undefined, ReferenceFacts, ReferenceObject, ReferenceStep, ReferenceWorld> = {
      ...referenceBackend,
      // What ends takes everything along.
      async open(options, world, signal) {
        const { family } = await referenceBackend.open(options, world, signal);
        const close = async (stop: AbortSignal): Promise<void> => {
          for (const one of FAMILIES) await cleanUpBackend(family(one), world.clock, stop);
        };
        return { family, close };
      },
    };
    const resident: BackendModule = { ...module, residence: "process" };
    expect((await check([BASIC, AFFINE], resident)).findings).toEqual([]);
    // The same is wrong where the kernel should go on.
    expect((await check([BASIC], module)).findings).not.toEqual([]);
  });

  it("that can't be opened: that it threw", async () => {
    const module: BackendModule = { ...referenceBackend, open: () => Promise.reject(new Error("no way in")) };
    const { findings } = await check([BASIC], module);
    expect(findings).toMatchObject(
      [
        ["the host in memory", "IPv4"],
        ["the host in memory", "IPv6"],
        [BASIC.name, "IPv4"],
      ].map(([scenario, family]) => ({
        kind: "error",
        got: "no way in",
        step: "the start",
        scenario,
        family,
      })),
    );
  });

  it("stops where it was told to", async () => {
    const { findings } = await checkBackend(referenceBackend, createReferenceHost, [basicThatSees("refused"), BASIC], { maxFindings: 2 });
    expect(findings).toHaveLength(2);
  });
});
