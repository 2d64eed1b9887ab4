import type { Packet } from "@turnout/conformance";
import { beforeEach, describe, expect, it } from "vitest";
import { rawSlice } from "@turnout/core/testing";
import { cart, openProxy } from "./test-support/proxy.ts";
import type { IpvsProxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";
import type { IpvsFakeHost } from "./testing/index.ts";

const PACKET: Packet = { family: "IPv4", protocol: "TCP", source: "10.1.1.9", destination: "10.96.0.1", port: 80, link: "veth9" };
const [ONE, TWO] = ["10.1.1.1", "10.1.1.2"] as const;
const POLL_MS = 5_000;

let host: IpvsFakeHost;
let proxy: IpvsProxy;
beforeEach(async () => {
  host = createFakeHost();
  proxy = await openProxy(host.world);
});

/** The real servers of the Service, by address, with their weights. */
function weights(): Readonly<Record<string, number>> {
  const own = host.ipvs.virtualServers().filter(({ address }) => address === "10.96.0.1");
  return Object.fromEntries(own.flatMap(({ realServers }) => realServers.map(({ address, weight }) => [address, weight])));
}

/** Let time pass, and sync as often as what lingers asks for it. */
async function pass(ms: number, endpoints: readonly string[], by: IpvsProxy = proxy): Promise<void> {
  for (let left = ms; left > 0; left -= POLL_MS) {
    await host.advance(POLL_MS);
    await by.sync(cart(endpoints));
  }
}

/** Sync with both endpoints, connect to the first one, and take it away. */
async function loseOneInUse(): Promise<void> {
  await proxy.sync(cart([ONE]));
  expect(host.connect(PACKET, () => 0)).toMatchObject({ is: "forward", endpoint: `${ONE}:8080` });
  await proxy.sync(cart([ONE, TWO]));
  await proxy.sync(cart([TWO]));
}

describe("a real server that is not wanted any more", () => {
  it("goes at once without connections", async () => {
    await proxy.sync(cart([ONE, TWO]));
    await proxy.sync(cart([TWO]));
    expect(weights()).toEqual({ [TWO]: 1 });
  });

  it("keeps its connections with weight 0 until they have ended", async () => {
    await loseOneInUse();
    expect(weights()).toEqual({ [ONE]: 0, [TWO]: 1 });
    await pass(POLL_MS, [TWO]);
    expect(weights()).toEqual({ [ONE]: 0, [TWO]: 1 });
    // How long the fake's connections are remembered is IPVS's timeout, 900 s; drain-seconds is as much.
    await pass(900_000, [TWO]);
    expect(weights()).toEqual({ [TWO]: 1 });
  });

  it("has its weight again when it comes back", async () => {
    await loseOneInUse();
    await proxy.sync(cart([ONE, TWO]));
    expect(weights()).toEqual({ [ONE]: 1, [TWO]: 1 });
    await pass(2 * POLL_MS, [ONE, TWO]);
    expect(weights()).toEqual({ [ONE]: 1, [TWO]: 1 });
  });

  it("goes when its time is up, whatever goes on", async () => {
    proxy = await openProxy(host.world, { "drain-seconds": 20 });
    await loseOneInUse();
    await pass(15_000, [TWO]);
    expect(weights()).toEqual({ [ONE]: 0, [TWO]: 1 });
    await pass(POLL_MS, [TWO]);
    expect(weights()).toEqual({ [TWO]: 1 });
  });

  it("is waited for by the next process, too", async () => {
    await loseOneInUse();
    const next = await openProxy(host.world, { "drain-seconds": 20 });
    await next.sync(cart([TWO]));
    expect(weights()).toEqual({ [ONE]: 0, [TWO]: 1 });
    await pass(25_000, [TWO], next);
    expect(weights()).toEqual({ [TWO]: 1 });
  });

  it("keeps its connections when it was the last one here, and new ones are dropped, whoever makes them", async () => {
    const local = { internalTrafficPolicy: "Local" };
    await proxy.sync(cart([ONE], local));
    host.connect(PACKET, () => 0);
    await proxy.sync(cart(["10.1.2.1"], local));
    expect(weights()).toEqual({ [ONE]: 0 });
    for (const packet of [PACKET, { ...PACKET, source: "172.18.0.1", link: "" }])
      expect(host.trace({ ...packet, sourcePort: 50_000 } as Packet, () => 0)).toMatchObject({ is: "drop" });
    await proxy.sync(cart([ONE], local));
    expect(weights()).toEqual({ [ONE]: 1 });
    expect(host.trace(PACKET, () => 0)).toMatchObject({ is: "forward", endpoint: `${ONE}:8080` });
  });

  it("serves again when its Service was deleted and comes back", async () => {
    await loseOneInUse();
    await proxy.sync([]);
    await proxy.sync(cart([ONE]));
    expect([weights(), proxy.ledger.failed.size]).toEqual([{ [ONE]: 1 }, 0]);
  });

  it.each(["UDP", "SCTP"] as const)("keeps its flows while its endpoint is there, with %s, also over a restart", async (protocol) => {
    const spec = { ports: [{ name: "voice", protocol, port: 80 }] };
    const leaving = [
      ...cart([], spec).slice(0, 1),
      rawSlice(
        "cart",
        [
          { ip: ONE, node: "node1", ready: false, serving: true, terminating: true },
          { ip: TWO, node: "node1" },
        ],
        {
          ports: [{ name: "voice", protocol, port: 8080 }],
        },
      ),
    ];
    await proxy.sync(cart([ONE, TWO], spec));
    await proxy.sync(leaving);
    expect(weights()).toEqual({ [ONE]: 0, [TWO]: 1 });
    expect(await (await openProxy(host.world)).sync(leaving)).toBe(0);
    await proxy.sync(cart([TWO], spec));
    expect(weights()).toEqual({ [TWO]: 1 });
  });

  it.each(["UDP", "SCTP"] as const)("goes at once with %s", async (protocol) => {
    const spec = { ports: [{ name: "voice", protocol, port: 80 }] };
    await proxy.sync(cart([ONE], spec));
    expect(host.connect({ ...PACKET, protocol }, () => 0)).toMatchObject({ is: "forward", endpoint: `${ONE}:8080` });
    await proxy.sync(cart([TWO], spec));
    expect(weights()).toEqual({ [TWO]: 1 });
  });

  it("takes no more before its connections are counted", async () => {
    const counted: Readonly<Record<string, number>>[] = [];
    const count = host.ipvs.realServers.bind(host.ipvs);
    host.ipvs.realServers = (keys) => {
      counted.push(weights());
      return count(keys);
    };
    await proxy.sync(cart([ONE, TWO]));
    await proxy.sync(cart([TWO]));
    expect(counted).toEqual([{ [ONE]: 0, [TWO]: 1 }]);
  });
});
