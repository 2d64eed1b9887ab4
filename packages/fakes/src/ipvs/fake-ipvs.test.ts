import { TestClock } from "@turnout/core/testing";
import { FaultSwitches } from "@turnout/conformance";
import { describe, expect, it } from "vitest";
import type { IpvsOperation, VirtualServerKey } from "@turnout/host/ipvs/model";
import { createFakeSysctl } from "@turnout/host/testing";
import { FakeIpvs } from "./fake-ipvs.ts";

const { signal } = new AbortController();
const WEB: VirtualServerKey = { family: "IPv4", protocol: "TCP", address: "10.96.0.1", port: 80 };
const packet = { protocol: "tcp", source: "203.0.113.9", sourcePort: 40_000, destination: "10.96.0.1", port: 80 };
const [ONE, TWO] = [
  { address: "10.1.0.1", port: 8080 },
  { address: "10.1.0.2", port: 8080 },
];

function add(scheduler: string, flags: number = 0, timeoutSeconds: number = 0): IpvsOperation {
  return { verb: "add-service", service: { ...WEB, scheduler, flags, timeoutSeconds, clientPrefixLength: 32 } };
}

function server(verb: "add-server" | "edit-server", one: typeof ONE, weight: number): IpvsOperation {
  return { verb, service: WEB, server: { ...one, weight } };
}

function created(
  scheduler: string = "rr",
  flags: number = 0,
  timeoutSeconds: number = 0,
  parameters: Readonly<Record<string, string>> = {},
) {
  const clock = new TestClock(0);
  const faults = new FaultSwitches();
  const ipvs = new FakeIpvs({ clock, faults, sysctl: createFakeSysctl(parameters) });
  expect(ipvs.run(add(scheduler, flags, timeoutSeconds), server("add-server", ONE, 1), server("add-server", TWO, 1))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  const counts = async (): Promise<readonly string[]> =>
    (await ipvs.realServers([WEB]))
      .flat()
      .map(({ weight, activeConnections, inactiveConnections }) => `${weight} ${activeConnections} ${inactiveConnections}`);
  return { ipvs, clock, faults, counts };
}

describe("IPVS in memory", () => {
  it("sends a new connection to a real server with a weight, refuses it where there is none, and knows nothing of others", () => {
    const { ipvs } = created();
    expect([ipvs.trace(packet, () => 0), ipvs.trace(packet, () => 0.99)]).toEqual([ONE, TWO]);
    ipvs.run(server("edit-server", ONE, 0));
    expect([ipvs.trace(packet, () => 0), ipvs.trace(packet, () => 0.99)]).toEqual([TWO, TWO]);
    ipvs.run(server("edit-server", TWO, 0));
    expect(ipvs.trace(packet, () => 0)).toBe("reject");
    expect(ipvs.trace({ ...packet, protocol: "udp" }, () => 0)).toBeUndefined();
  });

  it("counts connections until their time is over, also while their real server is away", async () => {
    const { ipvs, clock, counts } = created();
    ipvs.connect(packet, () => 0);
    ipvs.trace(packet, () => 0);
    expect(await counts()).toEqual(["1 1 0", "1 0 0"]);
    ipvs.run({ verb: "delete-server", service: WEB, server: ONE }, server("add-server", ONE, 5));
    expect(await counts()).toEqual(["1 0 0", "5 1 0"]);
    await clock.advance(900_000);
    expect(await counts()).toEqual(["1 0 0", "5 0 0"]);
  });

  it("keeps a client with its real server, at weight 0 too, for as long as it was told", async () => {
    const { ipvs, clock } = created("rr", 1, 100);
    expect(ipvs.connect(packet, () => 0)).toEqual(ONE);
    expect(ipvs.connect({ ...packet, source: "203.0.113.10" }, () => 0.99)).toEqual(TWO);
    ipvs.run(server("edit-server", ONE, 0));
    expect(ipvs.trace(packet, () => 0.99)).toEqual(ONE);
    await clock.advance(99_999);
    expect(ipvs.trace(packet, () => 0.99)).toEqual(ONE);
    await clock.advance(1);
    expect(ipvs.trace(packet, () => 0)).toEqual(TWO);
  });

  it("lets a client go from a real server of weight 0 where a kernel parameter says so, and from one that is gone", () => {
    const { ipvs } = created("rr", 1, 100, { "net.ipv4.vs.expire_quiescent_template": "1" });
    ipvs.connect(packet, () => 0);
    ipvs.run(server("edit-server", ONE, 0));
    expect(ipvs.trace(packet, () => 0)).toEqual(TWO);
    ipvs.run(server("edit-server", ONE, 1), { verb: "delete-server", service: WEB, server: ONE });
    expect(ipvs.trace(packet, () => 0)).toEqual(TWO);
  });

  it.each(["sh", "mh"])("%s takes the same one for a client, whatever chance says", (scheduler) => {
    const { ipvs } = created(scheduler);
    const clients = Array.from({ length: 20 }, (_, index) => ({ ...packet, source: `203.0.113.${index}` }));
    const chosen = clients.map((client) => ipvs.trace(client, () => 0));
    expect(clients.map((client) => ipvs.trace(client, () => 0.99))).toEqual(chosen);
    expect(new Set(chosen.map((one) => JSON.stringify(one))).size).toBe(2);
  });

  it("a change fails before, during or after it, and an address that is refused spoils its own operations alone", async () => {
    for (const [when, left] of [
      ["before", ["1 0 0", "1 0 0"]],
      ["during", ["0 0 0", "1 0 0"]],
      ["after", ["0 0 0", "0 0 0"]],
    ] as const) {
      const { ipvs, faults, counts } = created();
      faults.setFault({ when, afterChanges: 0 });
      const change = ipvs.change([server("edit-server", ONE, 0), server("edit-server", TWO, 0)], signal);
      await expect(change).rejects.toThrow("[tool_failed]");
      expect(await counts()).toEqual(left);
    }
    const { ipvs, faults } = created();
    faults.refuse(["10.1.0.1"]);
    const outcomes = await ipvs.change([server("edit-server", ONE, 0), server("edit-server", TWO, 0)], signal);
    expect(outcomes.map((error) => error?.code)).toEqual(["tool_failed", undefined]);
    expect(ipvs.written).toBe(1);
  });
});
