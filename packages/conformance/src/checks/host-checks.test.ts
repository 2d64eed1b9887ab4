import { describe, expect, it } from "vitest";
import type { BackendModule } from "@turnout/core";
import { withHost } from "../runner/changed-subject.ts";
import { checkBackend } from "./check.ts";
import type { FakeHost } from "../runner/fake-host.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { SCENARIOS } from "../scenarios/index.ts";
import { createReferenceHost } from "../reference/reference-host.ts";

/** What is found of reference on a host that was changed, before any scenario. */
async function found(change: (host: FakeHost) => Partial<FakeHost>, module: BackendModule = referenceBackend): Promise<readonly string[]> {
  const { createFakeHost } = withHost(change)({ module, createFakeHost: createReferenceHost });
  const { findings } = await checkBackend(module, createFakeHost, []);
  return findings.map(({ kind, scenario, family, what, got }) => `${kind} ${scenario} ${family}: ${what}: ${got}`);
}

const both = (what: string): readonly string[] => ["IPv4", "IPv6"].map((family) => `contract the host in memory ${family}: ${what}`);
const forgetful = (host: FakeHost): Partial<FakeHost> => ({ connect: (packet, random) => host.trace(packet, random) });

describe("what the kit says of a host", () => {
  it("that shows everything: nothing", async () => {
    expect(await found(() => ({}))).toEqual([]);
  });

  it.each([
    ["shows nothing of its own", () => ({ own: () => [] }), "own() after a sync with a Service: nothing"],
    ["shows one thing for ever", () => ({ own: () => ["a table"] }), "own() after a sync with another Service: the same"],
    ["has nothing foreign", () => ({ external: () => [] }), "external() at the start: nothing"],
    ["nobody tampers with", () => ({ tamper: () => undefined }), "tamper() with something in force: nothing, 20 times"],
    ["shows no tampering", () => ({ tamper: () => "delete all" }), "own() after tamper(): the same"],
    ["remembers no flows", forgetful, "flows after a UDP connection: no more than before"],
    ["connects nobody", () => ({ connect: () => ({ is: "drop", path: [] }) }), "connect() of a UDP packet: drop"],
  ] satisfies readonly (readonly [string, (host: FakeHost) => Partial<FakeHost>, string])[])("that %s", async (_, change, what) => {
    expect(await found(change)).toEqual(expect.arrayContaining([...both(what)]));
  });

  it.each(["before", "during", "after"] as const)("that has no change fail %s it is done", async (when) => {
    const change = (host: FakeHost): Partial<FakeHost> => ({
      setFault: (fault) => host.setFault(fault?.when === when ? undefined : fault),
    });
    expect(await found(change)).toEqual(both(`a sync with a fault armed ${when} its first change: it succeeds`));
  });

  it.each(["trace", "setFault", "refuse", "world", "flows"] as const)("that lacks %s: that, once, and nothing else", async (name) => {
    const createFakeHost = (): FakeHost => Object.defineProperty(createReferenceHost(), name, { value: undefined });
    const { findings, cells } = await checkBackend(referenceBackend, createFakeHost, SCENARIOS);
    expect(findings.map(({ kind, what, got }) => `${kind} ${what}: ${got}`)).toEqual([`contract the host's ${name}: undefined`]);
    expect(cells).toEqual([]);
  });

  it("that can't be made: that, once", async () => {
    const { findings } = await checkBackend(
      referenceBackend,
      () => {
        throw new Error("no room");
      },
      SCENARIOS,
    );
    expect(findings.map(({ kind, got }) => `${kind} ${got}`)).toEqual(["error no room"]);
  });

  it("that remembers no flows, of a backend without UDP: nothing", async () => {
    expect(await found(forgetful, { ...referenceBackend, capabilities: { ...referenceBackend.capabilities, UDP: "not spoken" } })).toEqual(
      [],
    );
  });

  it("that nobody can tamper with, of a backend that lives in its process: nothing", async () => {
    expect(await found(() => ({ tamper: () => undefined }), { ...referenceBackend, residence: "process" })).toEqual([]);
  });

  it("of a family that the backend doesn't have: nothing", async () => {
    const module: BackendModule = { ...referenceBackend, capabilities: { ...referenceBackend.capabilities, IPv6: "not spoken" } };
    expect(await found(() => ({ external: () => [] }), module)).toEqual([both("external() at the start: nothing")[0]]);
  });
});
