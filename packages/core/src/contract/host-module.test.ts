import { describe, expect, it } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { RecordingLog } from "../testing/recording-log.ts";
import { ToyHost } from "../test-support/toy-backend.ts";
import type { BackendModule, HostReport } from "./backend.ts";
import { ALL_CAPABILITIES, abilitiesOf, CAPABILITY_DEFAULTS } from "./capabilities.ts";
import { openDataplane, probeModule, withWorldOf } from "./host-module.ts";
import type { World } from "./world.ts";

const NEVER = new AbortController().signal;
const outOfBounds = (): never => {
  throw new Error("no program is run");
};
const WORLD: World = { exec: { run: outOfBounds, open: outOfBounds }, clock: new TestClock(), log: new RecordingLog() };

function toy(changes: Partial<BackendModule> = {}): BackendModule {
  return {
    name: "toy",
    contract: 2,
    residence: "kernel",
    capabilities: { ...ALL_CAPABILITIES, SCTP: "never heard of" },
    parseOptions: (raw) => raw,
    probe: () => Promise.resolve({ facts: 1, versions: {}, problems: [] }),
    open: () => Promise.resolve({ family: () => new ToyHost().open(), close: () => Promise.resolve() }),
    ...changes,
  };
}

const finding = (found: Partial<HostReport<unknown>>): BackendModule =>
  toy({ probe: () => Promise.resolve({ facts: 1, versions: {}, problems: [], ...found }) });

describe("what a backend can do on a host", () => {
  it("is what its module says, with defaults for what that leaves out", () => {
    const { capabilities, variants } = abilitiesOf({ capabilities: { TCP: true, drop: "no way" }, variants: { affinityScope: "address" } });
    expect(capabilities).toEqual({ ...CAPABILITY_DEFAULTS, TCP: true, drop: "no way" });
    expect(variants).toEqual({
      undefinedClusterIPPort: "pass",
      undefinedExternalPort: "pass",
      unallocatedClusterIP: "pass",
      nodePortRejectScope: "nodePortAddresses",
      rejectFromHost: true,
      blockedWithoutEndpoints: "drop",
      affinityScope: "address",
      affinityBy: "memory",
      nodePortScope: "settings",
      nodePortsOnLoopback: "never",
      rowChanges: "atOnce",
      localClients: "packets",
    });
  });

  it("closes what nobody named", () => {
    const began = Object.keys(ALL_CAPABILITIES) as readonly (keyof typeof ALL_CAPABILITIES)[];
    expect(began.map((name) => CAPABILITY_DEFAULTS[name]).every((can) => typeof can === "string")).toBe(true);
  });

  it("is less where its probe found so, and otherwise where it found that", async () => {
    const module = finding({
      capabilities: { IPv6: "off on this host", TCP: true, SCTP: "no module" },
      variants: { rejectFromHost: false },
    });
    const { capabilities, variants } = await probeModule(module, {}, WORLD, NEVER);
    expect(capabilities).toEqual({ ...CAPABILITY_DEFAULTS, ...ALL_CAPABILITIES, IPv6: "off on this host", SCTP: "never heard of" });
    expect(variants.rejectFromHost).toBe(false);
  });

  it("is never more: a probe that says so is refused, in one line", async () => {
    await expect(probeModule(finding({ capabilities: { SCTP: true } }), {}, WORLD, NEVER)).rejects.toThrow(
      "[invalid_object] the probe found what can't be: capabilities.SCTP is true, and the module refuses it: never heard of: backend toy: ",
    );
  });

  it("is what can be: a probe that names nonsense is refused", async () => {
    const nonsense = { capabilities: { UDP: false } } as unknown as Partial<HostReport<unknown>>;
    await expect(probeModule(finding(nonsense), {}, WORLD, NEVER)).rejects.toThrow("capabilities.UDP is false, not true or a text");
  });
});

describe("a module's own world", () => {
  it("is made of the base, and let go of however the work ends", async () => {
    const reported: string[] = [];
    const module = toy({ createWorld: (base) => ({ ...base, close: () => void reported.push("closed") }) });
    expect(await withWorldOf(module, WORLD, (own) => Promise.resolve(own.clock))).toBe(WORLD.clock);
    await expect(withWorldOf(module, WORLD, () => Promise.reject(new Error("oops")))).rejects.toThrow("oops");
    expect(reported).toEqual(["closed", "closed"]);
  });

  it("is the base where it makes none", async () => {
    expect(await withWorldOf(toy(), WORLD, (own) => Promise.resolve(own))).toBe(WORLD);
  });
});

describe("a dataplane", () => {
  it("that is none is a defect, told in a line", async () => {
    const nothing = toy({ open: (() => Promise.resolve()) as unknown as BackendModule["open"] });
    await expect(openDataplane(nothing, {}, WORLD, NEVER)).rejects.toThrow("defect of the backend: what open of toy gave back is wrong");
  });

  it("whose family is none is one, too", async () => {
    const family = (() => ({})) as unknown as ToyHost["open"];
    const hollow = toy({ open: () => Promise.resolve({ family, close: () => Promise.resolve() }) });
    const dataplane = await openDataplane(hollow, {}, WORLD, NEVER);
    expect(() => dataplane.family("IPv4")).toThrow("what family of toy gave back is wrong: skeleton is missing; render is missing");
  });

  it("may say tellsDrift, the former name of reportsDrift, and a warning says so", async () => {
    const former = toy({
      open: () =>
        Promise.resolve({
          family: () => Object.assign(new ToyHost().open(), { tellsDrift: true, watch: () => [] }),
          close: () => Promise.resolve(),
        }),
    });
    const log = new RecordingLog();
    const dataplane = await openDataplane(former, {}, { ...WORLD, log }, NEVER);
    expect(dataplane.family("IPv4").reportsDrift).toBe(true);
    expect(log.lines.map(({ message }) => message)).toEqual([
      expect.stringContaining("backend toy: tellsDrift is called reportsDrift now"),
    ]);
  });
});

describe("what a probe resolved to", () => {
  it.each<[string, unknown, string]>([
    ["nothing", undefined, "it is undefined, not an object"],
    ["no problems", { facts: 1, versions: {} }, "problems is missing"],
    ["problems that are texts", { facts: 1, versions: {}, problems: ["no root"] }, "problems is a list, not a list of ProxyErrors"],
    ["a warning that is a text", { facts: 1, versions: {}, problems: [], warnings: "old" }, 'warnings is "old", not a list of ProxyErrors'],
    ["versions that are numbers", { facts: 1, versions: { kernel: 6 }, problems: [] }, "versions is an object, not an object of texts"],
  ])("has to be a report, not %s", async (_name, report, text) => {
    const module = toy({ probe: () => Promise.resolve(report as HostReport<unknown>) });
    await expect(probeModule(module, {}, WORLD, NEVER)).rejects.toThrow(
      `defect of the backend: what probe of toy gave back is wrong: ${text}`,
    );
  });
});
