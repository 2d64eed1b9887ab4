import { describe, expect, it } from "vitest";
import { abilitiesOf, ALL_CAPABILITIES, ProxyError, type ExecResult } from "@turnout/core";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import type { Packet } from "../oracle/packet.ts";
import type { RawObject } from "@turnout/core/testing";
import { BROKEN_ORDER } from "../breakages/broken-order.ts";
import { checkBackend } from "./check.ts";
import type { FakeHost, Trace } from "../runner/fake-host.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { createReferenceHost } from "../reference/reference-host.ts";
import { packetOf } from "../runner/probe-packet.ts";
import { createRandom } from "@turnout/core/testing";
import { REFERENCE_VARIANTS } from "../oracle/reference-variants.ts";
import { SCENARIOS } from "../scenarios/index.ts";
import { service, slices } from "../runner/short.ts";
import { HOST_ADDRESSES, STAGE_NODE, STAGE_OBJECTS, STAGE_SETTINGS } from "../runner/stage.ts";
import { watchTools } from "../runner/watched-tools.ts";
import { UnderWay } from "./under-way.ts";
import type { Applied } from "./under-way.ts";

const WEB: RawObject = service("web", { number: 1, ways: ["nodePort"] });
const SERVICES = new Map([["web", WEB]]);
const CLIENT = packetOf({ from: "client1", to: "web clusterIP", sees: "" }, "IPv4", "TCP", SERVICES);
const POD_1_1 = { is: "forward", endpoint: "10.1.1.1:8080", masquerade: true, path: ["the way"] } as const;
const POD_1_2 = { ...POD_1_1, endpoint: "10.1.1.2:8080" } as const;
const POD_1_3 = { ...POD_1_1, endpoint: "10.1.1.3:8080" } as const;
const REFUSED = { is: "reject", path: [] } as const;

/** The stage with a Service `web` that has these pods. */
function worldWith(pods: readonly string[], masqueradeAll: boolean = false): OracleWorld {
  return {
    objects: [...STAGE_OBJECTS, WEB, ...slices("web", pods)],
    nodeName: STAGE_NODE,
    settings: { ...STAGE_SETTINGS, masqueradeAll },
    hostAddresses: HOST_ADDRESSES,
    nodePortAddressesDefault: ["primary"],
    capabilities: abilitiesOf({ capabilities: ALL_CAPABILITIES }).capabilities,
    variants: REFERENCE_VARIANTS,
  };
}

/** What is said when a packet meets these fates one after another, and the last of them at rest. */
function said(before: Applied, after: OracleWorld, fates: readonly Trace[], packet: Packet = CLIENT): readonly string[] {
  let now: Trace = REFUSED;
  const host: Pick<FakeHost, "trace"> = { trace: () => now };
  const underWay = new UnderWay(host, { before, after, packets: [{ what: "it", packet }] }, createRandom(1));
  for (const fate of fates) {
    now = fate;
    underWay.look();
  }
  return underWay.found().map(({ what, expected, got }) => `${what}: ${expected} / ${got}`);
}

describe("while a change is under way", () => {
  const [one, two] = [worldWith(["pod-1-1"]), worldWith(["pod-1-1", "pod-1-2"])];

  it("a packet whose servers all change, and all see another source, may meet either server with either source where rows change in parts", () => {
    const fromPod = packetOf({ from: "pod-1-3", to: "web clusterIP", sees: "" }, "IPv4", "TCP", SERVICES);
    const then = worldWith(["pod-1-1"]);
    const atOnce = worldWith(["pod-1-2"], true);
    const now: OracleWorld = { ...atOnce, variants: { ...REFERENCE_VARIANTS, rowChanges: "inParts" } };
    const unmasked = [POD_1_1, POD_1_2].map((trace) => ({ ...trace, masquerade: false }) as const);
    expect(said(then, now, [...unmasked, POD_1_1, POD_1_2], fromPod)).toEqual([]);
    expect(said(then, now, [REFUSED, POD_1_2], fromPod)).toHaveLength(1);
    expect(said(then, atOnce, [{ ...POD_1_2, masquerade: false }, POD_1_2], fromPod)).toHaveLength(1);
    expect(said(then, worldWith(["pod-1-2"]), [POD_1_2, ...unmasked], fromPod)).toHaveLength(1);
  });

  it("a packet that is served before and after may go to any server of either, and nowhere else", () => {
    const what = "it, while the change was under way: pod-1-1 pod-1-2 saw node1 /";
    expect(said(one, two, [POD_1_1, POD_1_2, POD_1_1])).toEqual([]);
    expect(said(two, one, [POD_1_1, POD_1_2, POD_1_1])).toEqual([]);
    expect(said(one, two, [POD_1_1, REFUSED, POD_1_2])).toEqual([`${what} refused`]);
    expect(said(one, two, [POD_1_1, POD_1_3, POD_1_2])).toEqual([`${what} pod-1-3 saw node1`]);
    expect(said(one, two, [{ ...POD_1_1, masquerade: false }, POD_1_2])).toEqual([`${what} pod-1-1 saw client1`]);
  });

  it("one whose fate changes as a whole isn't looked at", () => {
    const none = worldWith([]);
    const dropped = { is: "drop", path: [] } as const;
    expect(said(none, one, [dropped, POD_1_1])).toEqual([]);
    expect(said(one, none, [dropped, REFUSED])).toEqual([]);
    const own = packetOf({ from: "pod-1-3", to: "web clusterIP", sees: "" }, "IPv4", "TCP", SERVICES);
    expect(said(one, worldWith(["pod-1-1"], true), [dropped, POD_1_1], own)).toEqual([]);
    expect(said(none, none, [dropped, REFUSED])).toEqual(["it, while the change was under way: refused / dropped"]);
  });

  it("where nothing was in force, one that nobody serves passes", () => {
    const unowned = { ...CLIENT, destination: "192.0.2.1" };
    const passed = { is: "pass", path: [] } as const;
    expect(said("nothing", one, [REFUSED, POD_1_1])).toEqual([]);
    expect(said("nothing", one, [passed], unowned)).toEqual([]);
    expect(said("nothing", one, [REFUSED, passed], unowned)).toEqual(["it, while the change was under way: untouched / refused"]);
  });

  it("what still is so at rest is for others to tell", () => {
    expect(said(one, two, [POD_1_1, REFUSED])).toEqual([]);
  });

  it("somebody looks after every command, also after one that was started before its input was known", async () => {
    const seen: string[] = [];
    let done = "";
    const { world } = createReferenceHost();
    const run = (text: string): Promise<ExecResult> => {
      done += text;
      return Promise.resolve({ code: 0, stdout: "", stderr: "" });
    };
    const started = { finish: run, pid: 7, close: () => undefined };
    const { exec, addresses } = watchTools(
      { ...world, exec: { run, open: () => started } },
      { look: () => void seen.push(done), failure: () => undefined },
    );
    await exec.run("a", []);
    const { finish, pid } = exec.open("b", []);
    expect([seen, pid]).toEqual([["a"], 7]);
    await finish("c");
    expect(seen).toEqual(["a", "ac"]);
    expect(addresses).toBe(world.addresses);
  });

  it("nothing else tells who tears down and rebuilds from who conforms", async () => {
    const [, breakIt] = BROKEN_ORDER["tears down and rebuilds"] ?? [];
    const broken = breakIt?.({ module: referenceBackend, createFakeHost: createReferenceHost });
    const { findings } = await checkBackend(broken?.module ?? referenceBackend, createReferenceHost, SCENARIOS.slice(0, 12));
    expect(findings.length).toBeGreaterThan(10);
    const isMeanwhile = ({ kind, what }: (typeof findings)[number]): boolean =>
      kind === "verdict" && what.endsWith(", while the change was under way");
    expect(findings.filter((finding) => !isMeanwhile(finding))).toEqual([]);
  });

  it("a tool fails when it is to, and then doesn't do what it is asked", async () => {
    const done: string[] = [];
    const due: ProxyError[] = [];
    const run = (file: string): Promise<ExecResult> => {
      done.push(file);
      return Promise.resolve({ code: 0, stdout: "", stderr: "" });
    };
    const started = { pid: 1, finish: run, close: () => undefined };
    const { world } = createReferenceHost();
    const { exec } = watchTools({ ...world, exec: { run, open: () => started } }, { look: () => undefined, failure: () => due.pop() });
    due.push(new ProxyError("timed_out", "now"));
    await expect(exec.run("one", [])).rejects.toThrow("now");
    await exec.run("two", []);
    due.push(new ProxyError("timed_out", "then"));
    await expect(exec.open("three", []).finish("four")).rejects.toThrow("then");
    expect(done).toEqual(["two"]);
  });
});
