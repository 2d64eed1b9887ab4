import type { Packet } from "@turnout/conformance";
import { stagePeer } from "@turnout/conformance";
import { createRandom, SHOWCASE } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { match, meta, payload } from "@turnout/host/nft-statement";
import type { NftCommand, NftRuleStatement, NftStatement } from "@turnout/host/nft-statement";
import { TABLE } from "../names.ts";
import { Commands } from "../test-support/commands.ts";
import { createFakeHost } from "./index.ts";
import type { NftFakeHost } from "./index.ts";
import { openProxy } from "../test-support/states.ts";
import type { NftProxy } from "../test-support/states.ts";

const t = new Commands("t");
const ours = new Commands(TABLE);

function packet(source: string, destination: string): Packet {
  const place = stagePeer(source);
  return { family: "IPv4", protocol: "TCP", source: place.addresses.IPv4, destination, port: 80, link: place.link };
}

async function showcase(): Promise<{ readonly host: NftFakeHost; readonly proxy: NftProxy }> {
  const host = createFakeHost();
  const proxy = await openProxy(host.world);
  await proxy.sync(SHOWCASE);
  return { host, proxy };
}

it.each([
  ["node1", "172.18.0.1", "lo", ["output", "postrouting"]],
  ["node1", "203.0.113.1", "eth0", ["output", "postrouting"]],
  ["client1", "10.1.2.1", "eth0", ["forward", "postrouting"]],
] as const)("a packet from %s to %s leaves by %s", (sender, to, link, hooks) => {
  const host = createFakeHost();
  const all = ["prerouting", "input", "forward", "output", "postrouting"];
  const chains = all.flatMap((hook) => [{ add: t.hooked(hook, hook, 5) }, t.rule(hook, match(meta("oifname"), link), { counter: null })]);
  expect(host.nft({ add: t.table() }, ...chains).isDone).toBe(true);
  const { path } = host.trace(packet(sender, to), () => 0);
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
    const { path } = host.trace(packet("client1", "10.96.0.99"), () => 0);
    const called = path.flatMap((line) => /^prerouting: t (\w+)$/.exec(line)?.[1] ?? []);
    expect(called).toEqual(["filter105", "nat110", "nat50", "filter99"]);
  });

  it.each(["before", "after"])(
    "host ports of another program, made %s the backend's table, don't get what is for Services",
    async (when) => {
      const ports = [{ add: t.table() }, ...chain("ports", "nat", -100, ...toPort)];
      const host = createFakeHost();
      if (when === "before") host.nft(...ports);
      await (await openProxy(host.world)).sync(SHOWCASE);
      if (when === "after") host.nft(...ports);
      const { endpoint } = host.trace(packet("client1", "10.96.0.1"), () => 0.3);
      expect(endpoint).toBe("10.1.0.15:8080");
      expect(host.trace(packet("client1", "10.1.9.9"), () => 0.3).endpoint).toBe("10.1.1.2:8080");
    },
  );
});

describe("faults", () => {
  it.each([
    ["before", 0, false],
    ["during", 0, false],
    ["after", 0, true],
    ["before", 1, true],
  ] as const)("%s, after %i changes", async (when, afterChanges, isThere) => {
    const host = createFakeHost();
    const proxy = await openProxy(host.world);
    host.setFault({ when, afterChanges });
    await expect(proxy.sync(SHOWCASE)).rejects.toMatchObject({ name: "ProxyError" });
    expect(host.own().some((line) => line.includes("chain dispatch"))).toBe(isThere);
    await proxy.adopt();
    await proxy.sync(SHOWCASE);
    const { host: other } = await showcase();
    expect(host.own()).toEqual(other.own());
  });
});

describe("another program", () => {
  it("adds, deletes, flushes and replaces", async () => {
    const { host, proxy } = await showcase();
    const random = createRandom(3);
    const kinds = new Set<string | undefined>();
    for (let round = 0; round < 400; round++) {
      kinds.add(host.tamper(random)?.split(" ").slice(0, 2).join(" "));
      await proxy.adopt();
      await proxy.sync(SHOWCASE);
    }
    const wanted = ["add chain", "add element", "add rule", "delete element", "delete rule", "delete table", "flush chain", "replace rule"];
    expect([...kinds]).toEqual(expect.arrayContaining(wanted));
  });

  it.each([
    ["the set loopback-rejects", ours.set("loopback-rejects", {})],
    ["the chain nat-prerouting", ours.chain("nat-prerouting")],
    ["the chain layout-5", ours.chain("layout-5")],
  ])("is repaired when it could delete %s", async (_, tampering) => {
    const { host, proxy } = await showcase();
    const fixtures = SHOWCASE.filter(({ name }) => name !== "sticky");
    await proxy.sync(fixtures);
    expect(host.nft({ delete: tampering }).isDone).toBe(true);
    await proxy.adopt();
    await proxy.sync(SHOWCASE);
    const { host: other } = await showcase();
    expect(host.own()).toEqual(other.own());
  });

  it.each<[string, readonly NftStatement[], number]>([
    ["a table that is there", [{ add: ours.table() }], 0],
    ["a chain that is there", [{ add: ours.chain("dispatch") }], 1],
    ["a set that is there", [{ add: ours.set("cluster-ips", { type: "ipv4_addr" }) }], 1],
    ["an element that is there", [ours.elements("add", "cluster-ips", "10.96.0.1")], 0],
    ["flushing an empty chain", [{ flush: ours.chain("layout-5") }], 0],
    [
      "an element that comes and goes",
      [ours.elements("add", "cluster-ips", "192.0.2.1"), ours.elements("delete", "cluster-ips", "192.0.2.1")],
      1,
    ],
    ["a transaction that is refused", [{ add: ours.chain("new") }, { add: t.chain("nope") }], 0],
  ])("the generation rises as in the kernel: %s", async (_, statements, by) => {
    const { host } = await showcase();
    const before = await host.world.netlink.nftGeneration();
    host.nft(...statements);
    expect((await host.world.netlink.nftGeneration()) - before).toBe(by);
  });
});
