import type { Packet } from "@turnout/conformance";
import { ProxyError } from "@turnout/core";
import type { Leftover } from "@turnout/core/backend";
import { beforeEach, describe, expect, it } from "vitest";
import { ipvsModule } from "./module.ts";
import { cart, openProxy } from "./test-support/proxy.ts";
import type { IpvsProxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";
import type { IpvsFakeHost } from "./testing/index.ts";

const never = new AbortController().signal;
const PACKET: Packet = { family: "IPv4", protocol: "TCP", source: "10.1.1.9", destination: "10.96.0.1", port: 80, link: "veth9" };
/** Chains that the host has from the beginning. */
const OF_OTHERS: ReadonlySet<string> = new Set(["KUBE-KUBELET-CANARY", "KUBE-OF-SOMEBODY"]);
/** What another mode of kube-proxy has, which took over. */
const OTHER_MODE = `*nat
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SVC-X - [0:0]
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-X
-A KUBE-SVC-X -j ACCEPT
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
COMMIT
`;

/** What kube-proxy in ipvs mode writes over our rules. */
const KUBE_PROXY_IPVS = `*nat
:KUBE-SERVICES - [0:0]
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT
COMMIT
`;

let host: IpvsFakeHost;
let proxy: IpvsProxy;
beforeEach(async () => {
  host = createFakeHost();
  proxy = await openProxy(host.world);
});

async function saved(table: string): Promise<string> {
  return (await host.world.exec.run("iptables-nft-save", ["-t", table])).stdout;
}

type Run = IpvsFakeHost["world"]["exec"]["run"];

/** The backend where programs answer otherwise; `run` leaves the others to the host. */
async function backendWhere(run: (...args: Parameters<Run>) => ReturnType<Run> | undefined): Promise<IpvsProxy["backend"]> {
  const { exec } = host.world;
  const other: typeof exec = { run: (...args) => run(...args) ?? exec.run(...args), open: (file, args) => exec.open(file, args) };
  return (await ipvsModule.open(ipvsModule.parseOptions({}), { ...host.world, exec: other }, never)).family("IPv4");
}

/** Have another mode or program write over our rules. */
async function overwrite(input: string): Promise<void> {
  const { code, stderr } = await host.world.exec.run("iptables-nft-restore", ["--noflush"], { input });
  expect([code, stderr]).toEqual([0, ""]);
}

/** Serve a Service with an open connection; what is left of it then. */
async function leftInUse(): Promise<Leftover> {
  await proxy.sync(cart(["10.1.1.1"]));
  host.connect(PACKET, () => 0);
  return await theLeftover();
}

async function theLeftover(by: IpvsProxy = proxy): Promise<Leftover> {
  const [leftover] = (await by.backend.leftovers?.(false, never)) ?? [];
  if (leftover === undefined) throw new Error("nothing is left");
  return leftover;
}

/** Let so much time pass, step by step. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 5_000) await host.advance(5_000);
}

/** Virtual servers, sets, chains and addresses that are ours, in words. */
async function traces(): Promise<readonly string[]> {
  const chains = [...(await saved("nat")).matchAll(/^:((?:KUBE|TURNOUT)-\S+)/gm)]
    .map(([, name = ""]) => name)
    .filter((name) => !OF_OTHERS.has(name));
  const servers = host.ipvs.virtualServers().filter(({ address }) => address.startsWith("10.96."));
  const sets = [...host.ipset.sets.keys()].filter((name) => name !== "SOMEBODYS");
  const links = (await host.world.netlink.addresses("IPv4")).filter(({ link }) => link === "kube-ipvs0");
  return [
    ...chains.toSorted(),
    ...servers.map(({ address, port }) => `server ${address}:${port}`),
    ...(sets.length > 0 ? ["sets"] : []),
    ...links.map(({ ip }) => `address ${ip}`),
  ];
}

describe("what is left when another backend has taken over", () => {
  it("goes, but for chains that the other one has under the same names", async () => {
    await proxy.sync(cart(["10.1.1.1"]));
    await overwrite(OTHER_MODE);
    const [leftover, ...more] = (await proxy.backend.leftovers?.(false, never)) ?? [];
    expect([leftover?.what, more]).toEqual(["1 virtual server of ipvs, and the addresses on kube-ipvs0", []]);
    await leftover?.remove(never);
    expect(await traces()).toEqual([
      "KUBE-MARK-MASQ",
      "KUBE-POSTROUTING",
      "KUBE-PROXY-CANARY",
      "KUBE-SERVICES",
      "KUBE-SVC-TURNOUT",
      "KUBE-SVC-X",
    ]);
    expect(await saved("nat")).toContain("-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-X");
    expect(await saved("nat")).toMatch(/^-A PREROUTING .*-j KUBE-SERVICES$/m);
    expect(await proxy.backend.leftovers?.(false, never)).toEqual([]);
  });

  it("stays, when cleaned up, where kube-proxy in ipvs mode has written since: it uses all of it", async () => {
    await proxy.sync(cart(["10.1.1.1"]));
    await overwrite(KUBE_PROXY_IPVS);
    const before = await traces();
    expect((await proxy.backend.leftovers?.(false, never))?.map(({ by }) => by)).toEqual(["kube-proxy"]);
    await proxy.backend.cleanup?.(never);
    expect(await traces()).toEqual(before);
  });

  it("goes as a whole where no other mode has such chains", async () => {
    await proxy.sync(cart(["10.1.1.1"]));
    for (const { remove } of (await proxy.backend.leftovers?.(false, never)) ?? []) await remove(never);
    expect(await traces()).toEqual([]);
  });

  it("keeps virtual servers that have connections until these have ended", async () => {
    const leftover = await leftInUse();
    let isDone = false;
    const removing = leftover.remove(never).then(() => (isDone = true));
    await pass(60_000);
    expect([isDone, await traces()]).toEqual([false, ["server 10.96.0.1:80", "sets", "address 10.96.0.1"]]);
    expect(host.lines.filter((line) => line.includes("connections through IPVS go on"))).toHaveLength(1);
    await pass(900_000);
    await removing;
    expect([isDone, await traces()]).toEqual([true, []]);
  });

  it("keeps the host's own ports from being reached through addresses that stay", async () => {
    const leftover = await leftInUse();
    const removing = leftover.remove(never);
    await host.advance(5_000);
    expect(await traces()).toContain("address 10.96.0.1");
    expect(host.trace({ ...PACKET, port: 22 }, () => 0)).toMatchObject({ is: "reject" });
    await pass(900_000);
    await removing;
    expect(await saved("filter")).not.toMatch(/KUBE-IPVS-FILTER|TURNOUT-LOCAL-ONLY/);
  });

  it("is gone on with by the next process, also where connections are to node ports alone", async () => {
    const ports = [{ name: "http", protocol: "TCP", port: 80, nodePort: 30_080 }];
    await proxy.sync(cart(["10.1.1.1"], { type: "NodePort", ports }));
    host.connect({ ...PACKET, source: "192.0.2.10", destination: "172.18.0.1", port: 30_080, link: "eth0" }, () => 0);
    const stop = new AbortController();
    const leftover = await theLeftover();
    const ended = leftover.remove(stop.signal).then(undefined, String);
    await host.advance(5_000);
    stop.abort();
    await host.advance(5_000);
    await ended;
    const next = await openProxy(host.world);
    const rest = await theLeftover(next);
    expect(rest.what).toBe("1 virtual server of ipvs, and the addresses on kube-ipvs0");
    const removing = rest.remove(never);
    await pass(900_000);
    await removing;
    expect([await traces(), host.ipvs.virtualServers().filter(({ address }) => address === "172.18.0.1")]).toEqual([[], []]);
  });

  it("is left, and said to be, when it is stopped meanwhile", async () => {
    const leftover = await leftInUse();
    const stop = new AbortController();
    const ended = leftover.remove(stop.signal).then(
      () => undefined,
      (error: unknown) => error,
    );
    await host.advance(5_000);
    stop.abort();
    await host.advance(5_000);
    expect(await ended).toMatchObject({ code: "canceled" });
    expect(await traces()).toContain("server 10.96.0.1:80");
  });

  it("takes no new connections where it stays for those that go on", async () => {
    const leftover = await leftInUse();
    const stop = new AbortController();
    const ended = leftover.remove(stop.signal).then(undefined, String);
    await host.advance(5_000);
    expect(
      host.ipvs
        .virtualServers()
        .find(({ address }) => address === "10.96.0.1")
        ?.realServers.map(({ weight }) => weight),
    ).toEqual([0]);
    stop.abort();
    await host.advance(5_000);
    await ended;
    // Whoever comes back finds all of it as it was.
    const next = await openProxy(host.world);
    await next.sync(cart(["10.1.1.1"]));
    expect(host.trace({ ...PACKET, source: "10.1.1.8" }, () => 0)).toMatchObject({ is: "forward", endpoint: "10.1.1.1:8080" });
  });

  it("stays for its connections, and is said to, where nobody can wait", async () => {
    const leftover = await leftInUse();
    await expect(leftover.remove(never, false)).rejects.toThrow(
      "[already_exists] virtual servers of ipvs stay: connections go on: 1 with connections",
    );
    expect(await traces()).toEqual(["server 10.96.0.1:80", "sets", "address 10.96.0.1"]);
  });

  it("goes in the other variant of iptables, too", async () => {
    const former = await openProxy(host.world, { variant: "legacy" });
    await former.sync(cart(["10.1.1.1"]));
    const next = await openProxy(host.world, { variant: "nft" });
    for (const { remove } of (await next.backend.leftovers?.(false, never)) ?? []) await remove(never);
    const { stdout } = await host.world.exec.run("iptables-legacy-save", []);
    expect(stdout).not.toMatch(/KUBE-SERVICES|KUBE-IPVS-FILTER|TURNOUT-/);
    expect(await traces()).toEqual([]);
  });

  it("goes in one variant of iptables although the other can't be read, and that is told", async () => {
    await proxy.sync(cart(["10.1.1.1"]));
    const said = "iptables-save v1.8.9 (legacy): Cannot initialize: Permission denied (you must be root)";
    const backend = await backendWhere((file) =>
      file.endsWith("legacy-save") ? Promise.resolve({ code: 1, stdout: "", stderr: said }) : undefined,
    );
    const [seen, hidden, ...more] = (await backend.leftovers?.(false, never)) ?? [];
    await seen?.remove(never);
    expect([await traces(), hidden?.unseen?.hint, hidden?.isLive, more]).toEqual([[], expect.stringContaining("CAP_NET_RAW"), false, []]);
  });

  it("is left alone, with the reason, where there are rules that the tool can't list", async () => {
    await proxy.sync(cart(["10.1.1.1"]));
    const stdout = "# Table `filter' is incompatible, use 'nft' tool.\n";
    const backend = await backendWhere((file) =>
      file.endsWith("nft-save") ? Promise.resolve({ code: 0, stdout, stderr: "" }) : undefined,
    );
    const before = await traces();
    await expect(backend.cleanup?.(never)).rejects.toThrow("is incompatible");
    expect(await traces()).toEqual(before);
  });

  it("leaves a variant alone in which ipvs never was", async () => {
    const kubelets = "*nat\n:KUBE-MARK-MASQ - [0:0]\n-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\nCOMMIT\n";
    await host.world.exec.run("iptables-nft-restore", ["--noflush"], { input: kubelets });
    await (await openProxy(host.world, { variant: "legacy" })).sync(cart(["10.1.1.1"]));
    for (const { remove } of (await proxy.backend.leftovers?.(false, never)) ?? []) await remove(never);
    expect(await traces()).toEqual(["KUBE-MARK-MASQ"]);
  });

  it.each(["tool_missing", "host_unsupported"] as const)("is cleaned up where ipset says %s", async (code) => {
    const backend = await backendWhere((file) => (file.endsWith("ipset") ? Promise.reject(new ProxyError(code, "no ipset")) : undefined));
    await expect(backend.cleanup?.(never)).resolves.toBeUndefined();
  });

  it("is nothing where nothing was, and IPVS and ipset are not even asked", async () => {
    const refuse = (): never => {
      throw new ProxyError("host_unsupported", "asked");
    };
    const ipvs = { ...host.world.ipvs, list: refuse, timeouts: refuse };
    const exec: typeof host.world.exec = {
      ...host.world.exec,
      run: (file, args, options) => (file.endsWith("ipset") ? refuse() : host.world.exec.run(file, args, options)),
      open: (file, args) => host.world.exec.open(file, args),
    };
    const world = { ...host.world, ipvs: Object.assign(Object.create(host.ipvs) as typeof host.ipvs, ipvs), exec };
    const backend = (await ipvsModule.open(ipvsModule.parseOptions({}), world, never)).family("IPv4");
    expect(await backend.leftovers?.(false, never)).toEqual([]);
  });
});
