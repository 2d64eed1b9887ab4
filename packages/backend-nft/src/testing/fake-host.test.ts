import { FAMILIES } from "@turnout/core";
import type { Packet } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core";
import type { NftEvent } from "@turnout/host";
import { stagePeer } from "@turnout/conformance";
import { SHOWCASE } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { match, meta, payload } from "@turnout/host/nft-statement";
import type { NftCommand, NftRuleStatement, NftStatement } from "@turnout/host/nft-statement";
import { nftModule } from "../module.ts";
import { TABLE } from "../names.ts";
import { Commands } from "../test-support/commands.ts";
import { createFakeHost } from "./index.ts";
import type { NftFakeHost } from "./index.ts";
import { openProxy } from "../test-support/states.ts";
import type { NftProxy } from "../test-support/states.ts";

const never = new AbortController().signal;
const t = new Commands("t");
const ours = new Commands(TABLE);
/** Random numbers from a list, over and over. */
const from = (...numbers: readonly number[]): (() => number) => {
  let at = 0;
  return () => numbers[at++ % numbers.length] ?? 0;
};

function packet(family: IPFamily, source: string, destination: string, more: Partial<Packet> = {}): Packet {
  const place = stagePeer(source);
  return { family, protocol: "TCP", source: place.addresses[family], destination, port: 80, link: place.link, ...more };
}

async function showcase(family: IPFamily): Promise<{ readonly host: NftFakeHost; readonly proxy: NftProxy }> {
  const host = createFakeHost();
  const proxy = await openProxy(host.world, family);
  await proxy.sync(SHOWCASE);
  return { host, proxy };
}

const ip = (family: IPFamily, number: number): string => (family === "IPv4" ? `10.96.0.${number}` : `fd00:96::${number}`);

describe.each(FAMILIES)("the fake host under the backend, %s", (family) => {
  it("takes the showcase, and a second look wants nothing", async () => {
    const { proxy } = await showcase(family);
    await proxy.adopt();
    expect(proxy.ledger.delta(0)).toMatchObject({ put: [], remove: [] });
  });

  it("translates a client's packet and masquerades it, a pod's as it is", async () => {
    const { host } = await showcase(family);
    const client = host.trace(packet(family, "client1", ip(family, 1)), from(0.3));
    expect(client).toMatchObject({ is: "forward", endpoint: family === "IPv4" ? "10.1.0.15:8080" : "[fd00:1::15]:8080", masquerade: true });
    expect(client.path.join("\n")).toContain("masquerade fully-random");
    const pod = { ...packet(family, "pod-1-1", ip(family, 1)), source: family === "IPv4" ? "10.1.1.1" : "fd00:1::99" };
    expect(host.trace(pod, from(0))).toMatchObject({ is: "forward", masquerade: false });
  });

  it("draws again when a slot is vacant", async () => {
    const { host } = await showcase(family);
    // Three endpoints in four slots: 0.9 is the vacant one; the last draw is from the first half.
    expect(host.trace(packet(family, "pod-1-1", ip(family, 1)), from(0.9, 0.6))).toMatchObject({
      endpoint: family === "IPv4" ? "10.1.0.16:8080" : "[fd00:1::16]:8080",
    });
    expect(host.trace(packet(family, "pod-1-1", ip(family, 1)), from(0.9))).toMatchObject({
      endpoint: family === "IPv4" ? "10.1.0.15:8080" : "[fd00:1::15]:8080",
    });
  });

  it("refuses, drops and lets pass", async () => {
    const { host } = await showcase(family);
    expect(host.trace(packet(family, "pod-1-1", ip(family, 3)), from(0)).is).toBe("reject");
    expect(host.trace(packet(family, "pod-1-1", ip(family, 4)), from(0)).is).toBe("drop");
    expect(host.trace(packet(family, "pod-1-1", ip(family, 1), { port: 81 }), from(0)).is).toBe("reject");
    expect(host.trace(packet(family, "node1", ip(family, 1), { port: 81 }), from(0)).is).toBe("reject");
    expect(host.trace(packet(family, "pod-1-1", stagePeer("client1").addresses[family]), from(0)).is).toBe("pass");
  });

  it("masquerades an endpoint that reaches itself", async () => {
    const { host } = await showcase(family);
    const self = family === "IPv4" ? "10.1.0.10" : "fd00:1::10";
    expect(host.trace({ ...packet(family, "pod-1-1", ip(family, 1)), source: self }, from(0))).toMatchObject({
      is: "forward",
      masquerade: true,
    });
  });

  it("keeps a client where it was sent, as long as the timeout runs", async () => {
    const { host } = await showcase(family);
    const request = packet(family, "pod-1-1", ip(family, 7));
    const first = host.connect(request, from(0.9)).endpoint;
    expect(host.trace(request, from(0)).endpoint).toBe(first);
    await host.advance(10_799_000);
    expect(host.trace(request, from(0)).endpoint).toBe(first);
    await host.advance(2_000);
    expect(host.trace(request, from(0)).endpoint).not.toBe(first);
  });

  it("remembers UDP flows until they are forgotten", async () => {
    const { host, proxy } = await showcase(family);
    const request = packet(family, "client1", ip(family, 8), { protocol: "UDP" });
    host.trace(request, from(0));
    expect(host.flows).toEqual([]);
    const { endpoint = "" } = host.connect(request, from(0));
    expect(host.flows).toEqual([{ family, source: request.source, destination: request.destination, port: 80, endpoint }]);
    const filter = { protocol: "UDP", address: request.destination, port: 80 } as const;
    expect(await proxy.backend.forgetFlows?.([{ ...filter, keep: [endpoint] }], never)).toBe(0);
    expect(await proxy.backend.forgetFlows?.([{ ...filter, keep: [] }], never)).toBe(1);
  });
});

it.each([
  ["node1", "172.18.0.1", "lo", ["output", "postrouting"]],
  ["node1", "203.0.113.1", "eth0", ["output", "postrouting"]],
  ["client1", "10.1.2.1", "eth0", ["forward", "postrouting"]],
] as const)("a packet from %s to %s leaves by %s", (sender, to, link, hooks) => {
  const host = createFakeHost();
  const all = ["prerouting", "input", "forward", "output", "postrouting"];
  const chains = all.flatMap((hook) => [{ add: t.hooked(hook, hook, 5) }, t.rule(hook, match(meta("oifname"), link), { counter: null })]);
  expect(host.nft({ add: t.table() }, ...chains).isDone).toBe(true);
  const { path } = host.trace(packet("IPv4", sender, to), () => 0);
  expect(path.filter((line) => line.includes(`oifname "${link}"`)).map((line) => line.split(":")[0])).toEqual(hooks);
});

describe("nat", () => {
  const chain = (name: string, type: string, priority: number, ...rule: readonly NftRuleStatement[]): readonly NftCommand[] => [
    { add: t.hooked(name, "prerouting", priority, type) },
    t.rule(name, ...rule),
  ];
  const toPort = [match(payload("tcp", "dport"), 80), { dnat: { addr: "10.1.1.2", port: 8080 } }];

  it("all nat chains of a hook are called at one place, in the order of their priorities, until one translates", () => {
    const host = createFakeHost();
    const chains = [
      chain("nat10", "nat", 10, { counter: null }),
      chain("nat50", "nat", -50, ...toPort),
      chain("nat110", "nat", -110, { accept: null }),
      chain("filter105", "filter", -105, { counter: null }),
      chain("filter99", "filter", -99, { counter: null }),
    ];
    expect(host.nft({ add: t.table() }, ...chains.flat()).isDone).toBe(true);
    const { path } = host.trace(packet("IPv4", "client1", "10.96.0.99"), () => 0);
    const called = path.flatMap((line) => /^prerouting: t (\w+)$/.exec(line)?.[1] ?? []);
    expect(called).toEqual(["filter105", "nat110", "nat50", "filter99"]);
  });

  it.each(["before", "after"])(
    "host ports of another program, made %s the backend's table, don't get what is for Services",
    async (when) => {
      const ports = [{ add: t.table() }, ...chain("ports", "nat", -100, ...toPort)];
      const host = createFakeHost();
      if (when === "before") host.nft(...ports);
      await (await openProxy(host.world, "IPv4")).sync(SHOWCASE);
      if (when === "after") host.nft(...ports);
      const { endpoint } = host.trace(packet("IPv4", "client1", ip("IPv4", 1)), from(0.3));
      expect(endpoint).toBe("10.1.0.15:8080");
      expect(host.trace(packet("IPv4", "client1", "10.1.9.9"), from(0.3)).endpoint).toBe("10.1.1.2:8080");
    },
  );

  it("clears the mark, also where another program's rule has rewritten the source", async () => {
    const host = createFakeHost();
    host.nft({ add: t.table() }, { add: t.hooked("early", "postrouting", 90, "nat") }, t.rule("early", { masquerade: null }));
    await (await openProxy(host.world, "IPv4")).sync(SHOWCASE);
    const { is, masquerade, path } = host.trace(packet("IPv4", "client1", ip("IPv4", 1)), from(0.3));
    expect([is, masquerade]).toEqual(["forward", true]);
    expect(path.join("\n")).not.toContain("postrouting: turnout nat-postrouting");
  });
});

describe("faults", () => {
  it.each([
    ["before", 0, false],
    ["during", 0, false],
    ["after", 0, true],
    ["before", 1, true],
  ] as const)("%s, after %i changes", async (when, afterChanges, isThere) => {
    const host = createFakeHost();
    const proxy = await openProxy(host.world, "IPv4");
    host.setFault({ when, afterChanges });
    await expect(proxy.sync(SHOWCASE)).rejects.toMatchObject({ name: "ProxyError" });
    expect(host.own().some((line) => line.includes("chain dispatch"))).toBe(isThere);
    await proxy.adopt();
    await proxy.sync(SHOWCASE);
    const { host: other } = await showcase("IPv4");
    expect(host.own()).toEqual(other.own());
  });
});

describe("a foreign hand", () => {
  it("does one thing at a time, and each is mended", async () => {
    const { host, proxy } = await showcase("IPv4");
    const before = host.own();
    let seed = 1;
    const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    const tamperings = new Set<string>();
    for (let round = 0; round < 400; round++) {
      const what = host.tamper(random) ?? "nothing";
      tamperings.add(what.split(" ").slice(0, 2).join(" "));
      await proxy.adopt();
      await proxy.sync(SHOWCASE);
      expect({ what, own: host.own() }).toEqual({ what, own: before });
    }
    for (const tampering of [
      "add chain",
      "add element",
      "add rule",
      "delete element",
      "delete rule",
      "delete table",
      "flush chain",
      "replace rule",
    ]) {
      expect(tamperings).toContain(tampering);
    }
  });

  it.each([
    ["the map affinity-endpoints", ours.map("affinity-endpoints")],
    ["the chain nat-prerouting", ours.chain("nat-prerouting")],
    ["the chain layout-4", ours.chain("layout-4")],
  ])("is repaired when it could delete %s", async (_, tampering) => {
    const { host, proxy } = await showcase("IPv4");
    const fixtures = SHOWCASE.filter(({ name }) => name !== "sticky");
    await proxy.sync(fixtures);
    expect(host.nft({ delete: tampering }).isDone).toBe(true);
    await proxy.adopt();
    await proxy.sync(SHOWCASE);
    const { host: other } = await showcase("IPv4");
    expect(host.own()).toEqual(other.own());
  });

  it("is told to watchers, and raises the generation", async () => {
    const { host } = await showcase("IPv4");
    const ending = new AbortController();
    const events = host.world.netlink.watchNft(ending.signal)[Symbol.asyncIterator]();
    const generation = await host.world.netlink.nftGeneration();
    host.tamper(from(0.5));
    const expected: Partial<NftEvent> = { kind: "commit", generation: generation + 1, pid: 6_666, process: "nft", tables: ["ip turnout"] };
    expect(await events.next()).toMatchObject({ done: false, value: expected });
    expect(await host.world.netlink.nftGeneration()).toBe(generation + 1);
    ending.abort();
  });

  it.each<[string, readonly NftStatement[], number]>([
    ["a table that is there", [{ add: ours.table() }], 0],
    ["a chain that is there", [{ add: ours.chain("dispatch") }], 1],
    ["a set that is there", [{ add: ours.set("cluster-ips", { type: "ipv4_addr" }) }], 1],
    ["an element that is there", [ours.elements("add", "cluster-ips", "10.96.0.1")], 0],
    ["flushing an empty chain", [{ flush: ours.chain("layout-4") }], 0],
    [
      "an element that comes and goes",
      [ours.elements("add", "cluster-ips", "192.0.2.1"), ours.elements("delete", "cluster-ips", "192.0.2.1")],
      1,
    ],
    ["a transaction that is refused", [{ add: ours.chain("new") }, { add: t.chain("nope") }], 0],
  ])("the generation rises as in the kernel: %s", async (_, statements, by) => {
    const { host } = await showcase("IPv4");
    const before = await host.world.netlink.nftGeneration();
    host.nft(...statements);
    expect((await host.world.netlink.nftGeneration()) - before).toBe(by);
  });

  it("finds nothing to do where the backend has nothing", () => {
    expect(createFakeHost().tamper(from(0.5))).toBeUndefined();
  });
});

it("starts with other people's tables, which cleanup leaves alone", async () => {
  const { host, proxy } = await showcase("IPv4");
  const fresh = createFakeHost();
  expect(fresh.external().length).toBeGreaterThan(10);
  await proxy.backend.cleanup?.(never);
  expect(host.own()).toEqual([]);
  expect(host.external()).toEqual(fresh.external());
});

it("is a host the backend finds nothing wrong with", async () => {
  const host = createFakeHost();
  const { versions, facts } = await nftModule.probe(nftModule.parseOptions({}), host.world, never);
  expect(versions["nft"]).toBe("1.0.6");
  expect(facts.addresses.IPv4).toEqual(["127.0.0.1", "172.18.0.1"]);
});
