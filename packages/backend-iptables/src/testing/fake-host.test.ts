import type { Packet } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core";
import { createRandom } from "@turnout/core/testing";
import type { NftEvent } from "@turnout/host";
import { stagePeer } from "@turnout/conformance";
import { describe, expect, it } from "vitest";
import { MARTIAN_RULE } from "@turnout/fakes/iptables";
import { openProxy, SHOWCASE } from "../test-support/states.ts";
import type { IptablesProxy } from "../test-support/states.ts";
import { createFakeHost } from "./index.ts";
import type { IptablesFakeHost } from "./index.ts";

/** A number, over and over. */
const always = (number: number) => (): number => number;

function packet(source: string, destination: string, more: Partial<Packet> = {}): Packet {
  const place = stagePeer(source);
  return { family: "IPv4", protocol: "TCP", source: place.addresses.IPv4, destination, port: 80, link: place.link, ...more };
}

async function open(host: IptablesFakeHost, family?: IPFamily): Promise<IptablesProxy> {
  const proxy = await openProxy(host.world, family);
  await proxy.adopt();
  return proxy;
}

async function showcase(family?: IPFamily): Promise<{ readonly host: IptablesFakeHost; readonly proxy: IptablesProxy }> {
  const host = createFakeHost();
  const proxy = await open(host, family);
  await proxy.sync(SHOWCASE);
  return { host, proxy };
}

/** Give restore lines of one table. */
async function restore(host: IptablesFakeHost, table: string, ...lines: readonly string[]): Promise<string> {
  const { code, stderr } = await host.run("iptables-restore --noflush", `*${table}\n${lines.join("\n")}\nCOMMIT\n`);
  return code === 0 ? "" : stderr;
}

describe("the kernel", () => {
  it("obeys both variants' rules", async () => {
    const host = createFakeHost();
    const packetOut = packet("client1", "10.96.0.99");
    expect(host.trace(packetOut, always(0)).is).toBe("pass");
    const input = "*filter\n-A FORWARD -d 10.96.0.99 -j DROP\nCOMMIT\n";
    expect(await host.run("iptables-legacy-restore --noflush", input)).toMatchObject({ code: 0 });
    expect((await host.run("iptables-save")).stdout).not.toContain("10.96.0.99");
    expect(host.trace(packetOut, always(0)).is).toBe("drop");
  });

  it("asks each translation once", async () => {
    const host = createFakeHost();
    const to = (port: number): string => `-A PREROUTING -p tcp -d 10.96.0.9 -j DNAT --to-destination 10.1.1.1:${port}`;
    expect(await restore(host, "nat", to(1), to(2))).toBe("");
    await host.run("iptables-legacy-restore --noflush", `*nat\n${to(3)}\nCOMMIT\n`);
    expect(host.trace(packet("client1", "10.96.0.9"), always(0)).endpoint).toBe("10.1.1.1:1");
  });

  it.each([
    ["client1", "172.18.0.1", "lo", ""],
    ["node1", "172.18.0.1", "lo", "OUTPUT POSTROUTING"],
    ["node1", "203.0.113.1", "eth0", "OUTPUT POSTROUTING"],
    ["client1", "10.1.2.1", "eth0", "FORWARD POSTROUTING"],
  ])("has a packet from %s to %s leave by %s", async (sender, to, link, hooks) => {
    const host = createFakeHost();
    const lines = ["FORWARD", "OUTPUT", "POSTROUTING"].map((hook) => `-A ${hook} -o ${link} -m comment --comment looked`);
    expect(await restore(host, "mangle", ...lines)).toBe("");
    const { path } = host.trace(packet(sender, to), always(0));
    expect(path.filter((line) => line.includes("looked")).map((line) => line.split(":")[0])).toEqual(hooks.split(" ").filter(Boolean));
  });

  it("keeps loopback addresses in, unless it routes them", async () => {
    const host = createFakeHost({ hasKubelet: false });
    const way = { source: "127.0.0.1", link: "" };
    expect(await restore(host, "nat", "-A OUTPUT -p tcp -d 127.0.0.1 -j DNAT --to-destination 10.1.2.1:80")).toBe("");
    const asked = packet("node1", "127.0.0.1", way);
    const fromOutside = packet("client1", "127.0.0.1");
    expect([host.trace(asked, always(0)).is, host.trace(fromOutside, always(0)).is]).toEqual(["drop", "drop"]);
    await host.sysctl.write("net.ipv4.conf.all.route_localnet", 1);
    expect([host.trace(asked, always(0)).is, host.trace(fromOutside, always(0)).is]).toEqual(["forward", "pass"]);
    expect(await restore(host, "filter", `-A INPUT ${MARTIAN_RULE}`)).toBe("");
    expect([host.trace(asked, always(0)).is, host.trace(fromOutside, always(0)).is]).toEqual(["forward", "drop"]);
  });

  it("drops beyond POSTROUTING what bears a mark that isn't somebody's", async () => {
    const host = createFakeHost();
    expect(await restore(host, "mangle", "-A PREROUTING -d 10.96.0.9 -j MARK --or-mark 0x4000")).toBe("");
    expect(host.trace(packet("client1", "10.96.0.9"), always(0)).is).toBe("drop");
    expect(await restore(host, "mangle", "-A POSTROUTING -j MARK --xor-mark 0x4000")).toBe("");
    expect(host.trace(packet("client1", "10.96.0.9"), always(0)).is).toBe("pass");
  });

  it("forgets clients with the last rule of their list", async () => {
    const { host, proxy } = await showcase();
    const withAffinity = packet("client1", "10.96.0.7");
    const where = (): string | undefined => host.trace(withAffinity, always(0)).endpoint;
    host.connect(withAffinity, always(0.99));
    expect(where()).toBe("10.1.0.75:8080");
    for (const fixtures of [SHOWCASE.filter(({ name }) => name !== "sticky"), SHOWCASE]) await proxy.sync(fixtures);
    expect(where()).toBe("10.1.0.70:8080");
  });

  it("has room for a hundred clients on a list", async () => {
    const host = createFakeHost();
    const rules = ["--rcheck --name seen -j ACCEPT", "--set --name seen -j REJECT"].map((rule) => `-A FORWARD -m recent ${rule}`);
    expect(await restore(host, "filter", ...rules)).toBe("");
    const from = (number: number): Packet => packet("client1", "10.96.0.9", { source: `10.9.0.${number}` });
    for (let number = 1; number <= 101; number++) host.connect(from(number), always(0));
    expect([1, 2, 101].map((number) => host.trace(from(number), always(0)).is)).toEqual(["reject", "pass", "pass"]);
  });
});

it("another program adds, inserts, replaces, deletes and flushes", async () => {
  const { host, proxy } = await showcase("IPv4");
  const random = createRandom(1);
  const kinds = new Set<string | undefined>();
  for (let round = 0; round < 200; round++) {
    kinds.add(/^\S+ \*\w+; (-\w|:)/.exec(host.tamper(random) ?? "")?.[1]);
    await proxy.adopt();
    await proxy.sync(SHOWCASE);
  }
  expect(kinds).toEqual(new Set(["-A", "-D", "-F", "-I", "-R", ":"]));
});

describe("failures on command", () => {
  it.each([
    ["before", 0, "nothing"],
    ["during", 0, "a part"],
    ["after", 0, "all"],
    ["before", 1, "all"],
  ] as const)("%s, after %i changes: %s is done", async (when, afterChanges, done) => {
    const host = createFakeHost();
    // In IPv4 a kernel parameter comes first.
    const proxy = await open(host, "IPv6");
    const empty = host.own();
    const { host: other } = await showcase("IPv6");
    host.setFault({ when, afterChanges });
    proxy.want(SHOWCASE);
    const isDone = await proxy.sync().then(
      () => true,
      () => false,
    );
    expect(isDone).toBe(afterChanges === 1);
    const is = host.own().length === empty.length ? "nothing" : host.own().length === other.own().length ? "all" : "a part";
    expect(is).toBe(done);
    host.setFault(undefined);
    await proxy.adopt();
    await proxy.sync();
    expect(host.own()).toEqual(other.own());
  });

  it("keeps legacy tools waiting while somebody has the lock, and no others", async () => {
    const host = createFakeHost();
    const { exec } = host.world;
    const release = host.holdLock();
    const waiting = exec.run("iptables-legacy-restore", ["-w", "5", "--noflush"], { input: "*filter\n:A - [0:0]\nCOMMIT\n" });
    expect(await exec.run("iptables-nft", ["-N", "A"])).toMatchObject({ code: 0 });
    expect(await exec.run("iptables-legacy-save", [])).toMatchObject({ code: 0, stdout: "" });
    await host.advance(5_000);
    expect(await waiting).toMatchObject({ code: 4, stderr: expect.stringContaining("Stopped waiting after 5s.") as string });
    const patient = exec.run("iptables-legacy", ["-w", "5", "-N", "A"]);
    await host.advance(4_999);
    release();
    expect(await patient).toMatchObject({ code: 0 });
  });
});

it("another program is told to watchers, table by table, where it uses the nft variant", async () => {
  const host = createFakeHost();
  const ending = new AbortController();
  const events = host.world.netlink.watchNft(ending.signal)[Symbol.asyncIterator]();
  const generation = await host.world.netlink.nftGeneration();
  const input = "*filter\n:A - [0:0]\nCOMMIT\n*nat\n:A - [0:0]\nCOMMIT\n*mangle\nCOMMIT\n";
  await host.run("ip6tables-legacy-restore --noflush", input);
  await host.run("/usr/sbin/ip6tables-restore --noflush", input);
  const event = (table: string, by: number): Partial<NftEvent> => ({
    kind: "commit",
    generation: generation + by,
    pid: 6_666,
    process: "ip6tables-resto",
    tables: [`ip6 ${table}`],
  });
  expect(await events.next()).toMatchObject({ done: false, value: event("filter", 1) });
  expect(await events.next()).toMatchObject({ done: false, value: event("nat", 2) });
  expect(await host.world.netlink.nftGeneration()).toBe(generation + 2);
  ending.abort();
});

it("tells rules that come in another order from those that may", async () => {
  const lines = [
    "-A KUBE-SERVICES -d 10.96.0.1 -j RETURN",
    "-A KUBE-SERVICES -d 10.96.0.2 -j RETURN",
    "-A KUBE-SERVICES -j KUBE-NODEPORTS",
  ];
  const ownOf = async (order: readonly number[]): Promise<readonly string[]> => {
    const host = createFakeHost();
    await restore(host, "nat", ":KUBE-SERVICES - [0:0]", ":KUBE-NODEPORTS - [0:0]", ...order.map((index) => lines[index] ?? ""));
    return host.own();
  };
  expect(await ownOf([1, 0, 2])).toEqual(await ownOf([0, 1, 2]));
  expect(await ownOf([0, 2, 1])).not.toEqual(await ownOf([0, 1, 2]));
});

it("has iptables, sysctl and nothing else", async () => {
  const { exec } = createFakeHost({ variant: "legacy" }).world;
  expect(await exec.run("/sbin/iptables", ["-V"])).toEqual(expect.objectContaining({ stdout: "iptables v1.8.9 (legacy)\n" }));
  expect(await exec.run("xtables-nft-multi", ["ip6tables-save", "-V"])).toMatchObject({ code: 0 });
  expect(await exec.run("sysctl", ["-n", "net.ipv4.ip_forward"])).toEqual({ code: 0, stdout: "1\n", stderr: "" });
  expect(await exec.run("sysctl", ["-n", "net.nope.nope"])).toMatchObject({ code: 255 });
  await expect(exec.run("nft", ["list", "ruleset"])).rejects.toMatchObject({ code: "tool_missing" });
  await expect(exec.open("nft", ["-f", "-"]).finish("x")).rejects.toMatchObject({ code: "tool_missing" });
});
