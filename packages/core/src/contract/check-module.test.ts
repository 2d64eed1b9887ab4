import { describe, expect, it } from "vitest";
import { ToyHost } from "../test-support/toy-backend.ts";
import { ProxyError } from "../model/errors.ts";
import type { BackendModule, Delta, KernelObject } from "./backend.ts";
import { demandBackend, demandDataplane, demandObserved, demandOutcome, moduleFaults, parseModule } from "./check-module.ts";

const X = { kind: "t", key: "x", value: 1 };
const DELTA: Delta<KernelObject> = {
  put: [{ after: X }],
  remove: [{ kind: "t", key: "gone", value: 1 }],
  lingering: [{ object: { kind: "t", key: "due", value: 1 }, sinceMs: 0 }],
  nowMs: 0,
};

const GOOD = {
  name: "good",
  contract: 2,
  residence: "kernel",
  capabilities: { TCP: true, SCTP: "not here" },
  parseOptions: (raw: unknown) => raw,
  probe: () => Promise.resolve({ facts: {}, versions: {}, problems: [] }),
  open: () => Promise.resolve({}),
} as const;

const without = (name: keyof typeof GOOD): object => Object.fromEntries(Object.entries(GOOD).filter(([one]) => one !== name));

describe("what is wrong with a module", () => {
  it.each<[string, unknown, readonly string[]]>([
    ["nothing", GOOD, []],
    [
      "nothing with all that may be there",
      { ...GOOD, variants: { affinityScope: "address" }, nodePortAddressesDefault: ["primary"], rights: {} },
      [],
    ],
    [
      "nothing where it names what a newer core may know",
      { ...GOOD, capabilities: { QUIC: 7 }, variants: { shape: "round" }, extra: 1 },
      [],
    ],
    ["no default export", undefined, ["nothing is exported"]],
    ["a text", "nft", ['it is "nft"']],
    ["the contract before", { ...GOOD, contract: 1 }, ["contract 1, this is 2"]],
    ["another contract, whatever else it lacks", { contract: 3 }, ["contract 3, this is 2"]],
    ["no contract", without("contract"), ["contract is missing, this is 2"]],
    ["no name", without("name"), ["name is missing"]],
    ["an empty name", { ...GOOD, name: "" }, ['name is "", not a text']],
    ["another residence", { ...GOOD, residence: "cloud" }, ['residence is "cloud", not "kernel" or "process"']],
    ["no capabilities", without("capabilities"), ["capabilities is missing"]],
    ["a list of capabilities", { ...GOOD, capabilities: ["TCP"] }, ["capabilities is a list, not an object"]],
    ["SCTP: false", { ...GOOD, capabilities: { SCTP: false } }, ["capabilities.SCTP is false, not true or a text that says why not"]],
    ["no reason", { ...GOOD, capabilities: { UDP: "" } }, ['capabilities.UDP is "", not true or a text that says why not']],
    [
      "a variant nobody has",
      { ...GOOD, variants: { affinityScope: "rows" } },
      ['variants.affinityScope is "rows", not "row" or "address"'],
    ],
    [
      "a variant of another type",
      { ...GOOD, variants: { rejectFromHost: "yes" } },
      ['variants.rejectFromHost is "yes", not true or false'],
    ],
    ["no function", without("probe"), ["probe is missing"]],
    ["something else than a function", { ...GOOD, open: {} }, ["open is an object, not a function"]],
    ["a world that is none", { ...GOOD, createWorld: {} }, ["createWorld is an object, not a function"]],
    ["rights without a reason", { ...GOOD, rights: { CAP_NET_ADMIN: true } }, ["rights is an object, not an object of texts"]],
    ["half an entry", { ...GOOD, serviceEntriesMax: 0.5 }, ["serviceEntriesMax is 0.5, not a whole number from 1"]],
    ["one address", { ...GOOD, nodePortAddressesDefault: "primary" }, ['nodePortAddressesDefault is "primary", not a list of texts']],
  ])("%s", (_name, value, faults) => {
    expect(moduleFaults(value)).toEqual(faults);
  });

  it("is told all at once, in one line", () => {
    const bad = { ...without("probe"), residence: "cloud", capabilities: { SCTP: false } };
    expect(() => parseModule(bad, "backend ./bad.mjs")).toThrow(
      '[invalid_object] this is no backend module: residence is "cloud", not "kernel" or "process"; probe is missing; ' +
        "capabilities.SCTP is false, not true or a text that says why not: backend ./bad.mjs: its default export",
    );
  });

  it("is nothing where a class has it all", () => {
    class Inherited {
      readonly name = "inherited";
      readonly contract = 2;
      readonly residence = "kernel";
      readonly capabilities: BackendModule["capabilities"] = {};
      parseOptions(): void {}
      probe(): void {}
      open(): void {}
    }
    const module = new Inherited();
    expect(parseModule(module, "backend inherited")).toBe(module);
  });
});

describe("what a backend gives back", () => {
  it("of open has to be a dataplane", () => {
    expect(() => demandDataplane(undefined, "toy")).toThrow("defect of the backend: what open of toy gave back is wrong: it is undefined");
    expect(() => demandDataplane({ close: 1 }, "toy")).toThrow("family is missing; close is 1, not a function");
  });

  it("of family has to be a backend: every member that is missing or wrong is named", () => {
    const backend = new ToyHost().open();
    expect(() => demandBackend(backend, "toy")).not.toThrow();
    expect(() => demandBackend({ ...backend, plan: undefined, watch: "no" }, "toy")).toThrow(
      'what family of toy gave back is wrong: plan is missing; watch is "no", not a function',
    );
    expect(() => demandBackend({ ...backend, reportsDrift: true, watch: undefined }, "toy")).toThrow(
      "reportsDrift is true, and watch is missing",
    );
  });

  it.each<[string, unknown, string]>([
    ["nothing", undefined, "undefined"],
    ["null", null, "null"],
    ["a list", [], "a list"],
    ["a flag", true, "true"],
  ])("of apply has to be an outcome, not %s", (_name, value, text) => {
    expect(() => demandOutcome(value, DELTA)).toThrow(`defect of the backend: apply resolved to ${text}, not to an Outcome`);
    expect(() => demandOutcome({}, DELTA)).not.toThrow();
  });

  const error = new ProxyError("tool_failed", "no");
  it.each<[string, unknown, string]>([
    ["failures in an object", { failed: { "t x": error } }, "failed is an object, not a Map of ProxyErrors by objectId"],
    ["failures that are texts", { failed: new Map([["t x", "no"]]) }, "failed is an object, not a Map of ProxyErrors by objectId"],
    ["a list of what was deferred", { deferred: ["t x"] }, "deferred is a list, not a Set of objectIds"],
    ["what lingers without end", { lingering: [{ object: X }] }, "lingering is a list, not a list of objects, each with afterMs"],
    [
      "a key in place of an id",
      { failed: new Map([["x", error]]) },
      'apply names "x", which was not in its plan: objects are named by objectId',
    ],
    ["what was not planned", { deferred: new Set(["t z"]) }, 'apply names "t z", which was not in its plan: objects are named by objectId'],
  ])("of apply has not to hold %s", (_name, value, text) => {
    expect(() => demandOutcome(value, DELTA)).toThrow(text);
  });

  it("of apply may name all that was planned", () => {
    const lingering = [{ object: { kind: "t", key: "due", value: 1 }, afterMs: 0 }];
    expect(() => demandOutcome({ failed: new Map([["t x", error]]), deferred: new Set(["t gone"]), lingering }, DELTA)).not.toThrow();
  });

  it("of observe has to be an observation, or nothing", () => {
    expect(() => demandObserved(undefined)).not.toThrow();
    expect(() => demandObserved({ objects: new Map() })).toThrow("what observe gave back is wrong: lingering is missing");
  });
});
