import { describe, expect, it } from "vitest";
import type { Packet } from "../oracle/packet.ts";
import type { World } from "@turnout/core";
import type { Trace } from "../runner/fake-host.ts";
import { referenceBackend } from "./reference-backend.ts";
import { createReferenceHost } from "./reference-host.ts";
import type { ReferenceStep } from "./reference-objects.ts";

const NEVER = new AbortController().signal;
const first = (): number => 0;
const last = (): number => 0.999;

const PACKET: Packet = { family: "IPv4", protocol: "UDP", source: "203.0.113.1", destination: "10.96.0.1", port: 80, link: "eth0" };
const NODE: ReferenceStep = {
  do: "add",
  object: { kind: "node", key: "node", value: { nodePortAddresses: ["172.18.0.1"], serviceCIDRs: ["10.96.0.0/16"] } },
};
const VALUE = {
  row: "kit/web:udp/UDP",
  rules: [{ from: "anyone", to: "cluster", masquerade: false }],
  sources: [],
  cluster: ["10.1.1.1:8080", "203.0.113.1:8080"],
  local: [],
  affinitySeconds: 0,
} as const;
const WEB: ReferenceStep = { do: "add", object: { kind: "destination", key: "10.96.0.1 80/UDP", value: VALUE } };

async function write({ exec }: World, ...steps: readonly ReferenceStep[]): Promise<string> {
  const { code, stderr } = await exec.run("reference", ["write", "IPv4"], { input: steps.map((step) => JSON.stringify(step)).join("\n") });
  return code === 0 ? "" : stderr;
}

function fate({ is, endpoint, masquerade }: Trace): string {
  return is === "forward" ? `${endpoint ?? ""}${masquerade === true ? " masqueraded" : ""}` : is;
}

async function hostWith(...steps: readonly ReferenceStep[]): Promise<ReturnType<typeof createReferenceHost>> {
  const host = createReferenceHost();
  expect(await write(host.world, NODE, ...steps)).toBe("");
  return host;
}

describe("the reference host", () => {
  it("takes a whole letter or nothing, and says what is wrong with it", async () => {
    const host = await hostWith(WEB);
    const { object } = WEB;
    const before = host.own();
    const gone: ReferenceStep = { do: "remove", object: { ...object, key: "elsewhere" } };
    expect(await write(host.world, { do: "remove", object: NODE.object }, WEB)).toBe("destination 10.96.0.1 80/UDP is there");
    expect(await write(host.world, { do: "remove", object: NODE.object }, gone)).toBe("destination elsewhere is not there");
    expect(await write(host.world, { ...gone, do: "replace" })).toBe("destination elsewhere is not there");
    expect(await write(host.world, { do: "remove", object }, WEB)).toBe("destination 10.96.0.1 80/UDP is touched twice");
    const withValue = (value: object): ReferenceStep => ({ do: "replace", object: { ...object, value: { ...VALUE, ...value } } });
    expect(await write(host.world, withValue({ cluster: [] }))).toBe("destination 10.96.0.1 80/UDP has a rule with an empty pool");
    expect(await write(host.world, withValue({ rules: [] }))).toBe("destination 10.96.0.1 80/UDP does not say what becomes of anyone");
    expect(host.own()).toEqual(before);
  });

  it.each([
    ["before", 1],
    ["during", 2],
    ["after", 3],
  ] as const)("fails %s a change when it is told to, once", async (when, count) => {
    const host = createReferenceHost();
    host.setFault({ when, afterChanges: 1 });
    expect(await write(host.world, NODE)).toBe("");
    const other: ReferenceStep = { do: "add", object: { kind: "clusterIP", key: "10.96.0.1", value: true } };
    expect(await write(host.world, WEB, other)).toBe("out of ink");
    expect(host.own()).toHaveLength(count);
    expect(await write(host.world, { do: "replace", object: NODE.object })).toBe("");
  });

  it("draws an endpoint, and masquerades who is sent to itself", async () => {
    const host = await hostWith(WEB);
    expect([fate(host.trace(PACKET, first)), fate(host.trace(PACKET, last))]).toEqual(["10.1.1.1:8080", "203.0.113.1:8080 masqueraded"]);
    const other = { ...PACKET, protocol: "TCP" as const };
    expect(fate(host.trace(other, first))).toBe("drop");
    expect(fate(host.trace({ ...other, destination: "192.0.2.9" }, first))).toBe("pass");
    expect(fate(host.trace({ ...other, destination: "172.18.0.1" }, first))).toBe("pass");
    expect(fate(createReferenceHost().trace(PACKET, first))).toBe("pass");
  });

  it("keeps a client for its time, and lets it go after", async () => {
    const withAffinity: ReferenceStep = { do: "add", object: { ...WEB.object, value: { ...VALUE, affinitySeconds: 2 } } };
    const host = await hostWith(withAffinity);
    host.trace(PACKET, last);
    expect(fate(host.connect(PACKET, first))).toBe("10.1.1.1:8080");
    await host.advance(1999);
    expect(fate(host.trace(PACKET, last))).toBe("10.1.1.1:8080");
    expect(fate(host.trace({ ...PACKET, source: "203.0.113.2" }, last))).toBe("203.0.113.1:8080");
    await host.advance(1);
    expect(fate(host.trace(PACKET, last))).toBe("203.0.113.1:8080 masqueraded");
  });

  it("remembers UDP flows until it is told to forget them", async () => {
    const host = await hostWith(WEB);
    host.connect(PACKET, first);
    host.connect({ ...PACKET, source: "203.0.113.2" }, last);
    host.connect({ ...PACKET, protocol: "TCP" }, first);
    expect(host.flows.map(({ source, endpoint }) => `${source} ${endpoint}`)).toEqual([
      "203.0.113.1 10.1.1.1:8080",
      "203.0.113.2 203.0.113.1:8080",
    ]);
    const { world } = host;
    const filter = { protocol: "UDP", address: "10.96.0.1", port: 80, keep: ["203.0.113.1:8080"] } as const;
    expect(await world.deleteFlows("IPv4", [{ ...filter, port: 81 }], NEVER)).toBe(0);
    expect(await world.deleteFlows("IPv6", [filter], NEVER)).toBe(0);
    expect(await world.deleteFlows("IPv4", [{ ...filter, only: ["10.1.1.2:8080"] }], NEVER)).toBe(0);
    expect(await world.deleteFlows("IPv4", [{ ...filter, address: "" }], NEVER)).toBe(0);
    expect(await world.deleteFlows("IPv4", [filter], NEVER)).toBe(1);
    expect(host.flows).toHaveLength(1);
  });

  it("is meddled with when somebody has a hand for it", async () => {
    const done = new Set<string>();
    for (const chance of [0, 0.4, 0.9]) {
      const host = await hostWith(WEB);
      const before = host.own();
      let asked = 0;
      // IPv4 first: nothing is written in the other family.
      done.add(host.tamper(() => (asked++ === 0 ? 0 : chance))?.split(" ")[0] ?? "");
      expect(host.own()).not.toEqual(before);
    }
    expect(done).toEqual(new Set(["delete", "change", "add"]));
    expect(createReferenceHost().tamper(first)).toBeUndefined();
  });

  it("tells the backend of its addresses, and of new ones from the time it asked on", async () => {
    const host = createReferenceHost();
    const backend = (await referenceBackend.open(undefined, host.world, NEVER)).family("IPv4");
    const stop = new AbortController();
    const events = backend.watch?.(stop.signal)[Symbol.asyncIterator]();
    const facts = (ip: string): unknown => ({ kind: "facts", facts: { addresses: { IPv4: [ip], IPv6: [] } } });
    const setAddress = (ip: string): void => host.setAddresses([{ ip, prefixLength: 24, link: "eth0" }]);
    setAddress("192.0.2.1");
    expect((await events?.next())?.value).toEqual(facts("192.0.2.1"));
    // Nobody waits for the next event yet.
    setAddress("192.0.2.2");
    expect((await events?.next())?.value).toEqual(facts("192.0.2.2"));
    stop.abort();
    expect((await events?.next())?.done).toBe(true);
  });
});
