import type { Plain } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { winkernelModule } from "./module.ts";
import { cart, openProxy } from "./test-support/proxy.ts";
import type { WinkernelProxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";
import type { FakeHostOptions, WinkernelFakeHost } from "./testing/index.ts";
import { SCHEMA_VERSION } from "./hns/documents.ts";
import { noWindows } from "./test-support/no-windows.ts";

const never = new AbortController().signal;
const [HERE, THERE, ALSO_THERE] = ["10.1.1.1", "10.1.2.1", "10.1.2.2"] as const;
const KEY = "loadbalancer TCP 10.96.0.1:80";
const AFFINE = { sessionAffinity: "ClientIP" };

/** A host, and a process on it. */
async function begin(
  options: FakeHostOptions = {},
  raw: Readonly<Record<string, Plain>> = {},
): Promise<{ readonly host: WinkernelFakeHost; readonly proxy: WinkernelProxy }> {
  const host = createFakeHost(options);
  return { host, proxy: await openProxy(host.world, raw) };
}

const lines = (host: WinkernelFakeHost, start: string): readonly string[] => host.own().filter((line) => line.startsWith(start));

/** The ids of our load balancers. */
function ids({ hns }: WinkernelFakeHost): readonly string[] {
  return [...hns.balancers.values()].filter(({ settings }) => settings.FrontendVIPs?.[0] !== "192.0.2.80").map(({ id }) => id);
}

/** Make an endpoint as another program does. */
function addRemote(host: WinkernelFakeHost, ip: string, mac: string = "02-11-00-00-00-01"): string {
  const endpoint = { IpConfigurations: [{ IpAddress: ip }], MacAddress: mac, Flags: 1, SchemaVersion: SCHEMA_VERSION };
  return host.hns.addEndpoint({ HostComputeNetwork: host.networkId, ...endpoint });
}

/** Make a load balancer as another program does. */
function addBalancer(host: WinkernelFakeHost, vip: string, endpoints: readonly string[], externalPort: number = 80): string {
  const ports = [{ Protocol: 6, InternalPort: 8080, ExternalPort: externalPort }];
  return host.hns.addBalancer({ HostComputeEndpoints: endpoints, FrontendVIPs: [vip], PortMappings: ports, SchemaVersion: SCHEMA_VERSION });
}

describe("a load balancer that changes", () => {
  it.each<[string, number, number, boolean]>([
    ["from HNS 15.5 on keeps its id", 15, 5, true],
    ["of HNS 16.0 keeps its id", 16, 0, true],
    ["of HNS 15.4, which says yes and does nothing, is made anew", 15, 4, false],
    ["of HNS 13.2 is made anew", 13, 2, false],
  ])("%s", async (_, major, minor, isKept) => {
    const { host, proxy } = await begin({ version: { major, minor } });
    await proxy.apply(cart([HERE]));
    const before = ids(host);
    expect(await proxy.apply(cart([HERE], AFFINE))).toEqual({});
    expect(lines(host, "loadbalancer")).toEqual([expect.stringContaining('"DistributionType":2')]);
    expect(ids(host)[0] === before[0]).toBe(isKept);
  });

  it("is deleted and made anew where HNS's version promises to change it, and it doesn't", async () => {
    const host = createFakeHost({ version: { major: 15, minor: 4 } });
    host.hns.version = (): Promise<string> => Promise.resolve('{"Success":true,"Output":{"Major":15,"Minor":5}}');
    const proxy = await openProxy(host.world);
    await proxy.apply(cart([HERE]));
    expect(await proxy.apply(cart([HERE], AFFINE))).toEqual({});
    expect(lines(host, "loadbalancer")).toEqual([expect.stringContaining('"DistributionType":2')]);
    expect(JSON.stringify(host.log.lines)).toContain("did not");
  });
});

describe("while a change is under way", () => {
  it.each<[string, number, number]>([
    ["from HNS 15.5 on no packet meets a gap", 15, 5],
    ["before, only packets to what changes do, and only while it is made anew", 13, 2],
  ])("%s", async (_, major, minor) => {
    const { host, proxy } = await begin({ version: { major, minor } });
    const other = cart([ALSO_THERE], { clusterIP: "10.96.0.2" }).map(renamed);
    await proxy.apply([...cart([HERE, THERE]), ...other]);
    const gaps = { changed: 0, other: 0 };
    const packet = { family: "IPv4", protocol: "TCP", source: "10.1.1.3", port: 80, link: "veth3" } as const;
    host.hns.onChange = (): void => {
      if (host.trace({ ...packet, destination: "10.96.0.1" }, () => 0).is !== "forward") gaps.changed++;
      if (host.trace({ ...packet, destination: "10.96.0.2" }, () => 0).is !== "forward") gaps.other++;
    };
    await proxy.apply([...cart([HERE, ALSO_THERE], AFFINE), ...other]);
    expect(gaps).toEqual({ changed: minor === 5 ? 0 : 1, other: 0 });
  });

  it("one that is told to stop stops, and says so", async () => {
    const { host, proxy } = await begin();
    const stop = new AbortController();
    host.hns.onChange = (): void => stop.abort();
    const delta = { put: [], remove: [], lingering: [], nowMs: 0 };
    const put = [THERE, ALSO_THERE].map((key) => ({
      after: { kind: "endpoint", key, value: { mac: "02-11-00-00-00-01", provider: "" } } as const,
    }));
    await expect(proxy.backend.apply(proxy.backend.plan({ ...delta, put }), stop.signal)).rejects.toThrow("[canceled]");
    expect(host.own()).toHaveLength(1);
  });
});

describe("poison objects are resolved", () => {
  it("what another program made at a wanted address meanwhile becomes what is wanted", async () => {
    const { host, proxy } = await begin({ version: { major: 13, minor: 2 } });
    addBalancer(host, "10.96.0.1", [addRemote(host, "10.1.2.9")]);
    expect(await proxy.apply(cart([HERE, THERE]))).toEqual({});
    expect(lines(host, "loadbalancer")).toEqual([expect.stringContaining("to 10.1.1.1 10.1.2.1* flags 1")]);
  });

  it("a load balancer that is gone when it is to change or to go", async () => {
    for (const after of [cart([HERE], AFFINE), []]) {
      const { host, proxy } = await begin();
      await proxy.apply(cart([HERE]));
      for (const id of ids(host)) host.hns.balancers.delete(id);
      expect(await proxy.apply(after)).toEqual({});
      expect(lines(host, "loadbalancer")).toHaveLength(after.length === 0 ? 0 : 1);
    }
  });

  it("a pod that came back at its address with another endpoint", async () => {
    const { host, proxy } = await begin();
    await proxy.apply(cart([THERE]));
    const old = [...host.hns.endpoints.values()].find(({ settings }) => settings.IpConfigurations[0]?.IpAddress === HERE);
    if (old === undefined) throw new Error("pod-1-1 has an endpoint");
    host.hns.endpoints.delete(old.id);
    host.hns.addEndpoint(old.settings);
    expect(await proxy.apply(cart([HERE, THERE]))).toEqual({});
    expect(lines(host, "loadbalancer")).toEqual([expect.stringContaining("to 10.1.1.1 10.1.2.1* flags")]);
  });

  it("a pod's endpoint that the CNI has not made yet: the others serve, and it joins them when it is there", async () => {
    const { host, proxy } = await begin();
    const { failed } = await proxy.apply(cart([HERE, "10.1.1.77"]));
    expect([...(failed?.keys() ?? [])]).toEqual(["endpoint 10.1.1.77", KEY]);
    expect(String(failed?.get(KEY))).toMatch(
      /HNS has no endpoint of this host at 10\.1\.1\.77: loadbalancer TCP 10\.96\.0\.1:80: the CNI makes it/,
    );
    expect(lines(host, "loadbalancer")).toEqual([expect.stringContaining("to 10.1.1.1 flags")]);
    const endpoint = { IpConfigurations: [{ IpAddress: "10.1.1.77" }], MacAddress: "00-15-5d-00-00-07", SchemaVersion: SCHEMA_VERSION };
    host.hns.addEndpoint({ HostComputeNetwork: host.networkId, ...endpoint });
    proxy.ledger.retryFailed();
    expect(await proxy.apply(cart([HERE, "10.1.1.77"]))).toEqual({});
    expect(lines(host, "loadbalancer")).toEqual([expect.stringContaining("to 10.1.1.1 10.1.1.77 flags")]);
  });

  it("none of a Service's pods has an endpoint: there is no load balancer, and none of before", async () => {
    const { host, proxy } = await begin();
    await proxy.apply(cart([HERE]));
    const { failed } = await proxy.apply(cart(["10.1.1.77"]));
    expect(failed?.has(KEY)).toBe(true);
    expect(host.own()).toEqual([]);
  });

  it("a deletion that fails once, as on Windows Server 2019", async () => {
    const { host, proxy } = await begin();
    await proxy.apply(cart([HERE]));
    host.hns.failDeletes(1);
    expect(await proxy.apply([])).toEqual({});
    expect(host.own()).toEqual([]);
  });

  it("a deletion that keeps failing keeps its endpoint, and fails by itself", async () => {
    const { host, proxy } = await begin();
    await proxy.apply(cart([THERE]));
    host.hns.failDeletes(2);
    const { failed } = await proxy.apply([]);
    expect([...(failed?.keys() ?? [])]).toEqual([KEY, "endpoint 10.1.2.1"]);
    proxy.ledger.retryFailed();
    expect(await proxy.apply([])).toEqual({});
    expect(host.own()).toEqual([]);
  });

  it("a port that somebody outside HNS holds fails by itself", async () => {
    const { proxy } = await begin({ loadBalancersMax: 1 });
    const { failed } = await proxy.apply(cart([HERE]));
    expect([...(failed ?? [])].map(([id, error]) => [id, error.code])).toEqual([[KEY, "tool_failed"]]);
  });
});

describe("endpoints", () => {
  it.each(["refused", "allowed"] as const)("one whose host changed is replaced, where deleting one in use is %s", async (deleteInUse) => {
    const host = createFakeHost({ network: "overlay", deleteInUse });
    const options = { sourceVip: "10.1.1.200" };
    await (await openProxy(host.world, options)).apply(cart([HERE, THERE]));
    const [network] = host.hns.networks;
    if (network === undefined) throw new Error("there is a network");
    host.hns.networks[0] = { ...network, remoteSubnets: [{ prefix: "10.1.2.0/24", provider: "172.18.0.9" }] };
    const proxy = await openProxy(host.world, options);
    expect(await proxy.apply(cart([HERE, THERE]))).toEqual({});
    expect(lines(host, "IPv4 remote endpoint 10.1.2.1")).toEqual([expect.stringContaining("provider 172.18.0.9")]);
    expect(lines(host, "loadbalancer")).toEqual([expect.stringContaining("to 10.1.1.1 10.1.2.1* flags")]);
    expect((await openProxy(host.world, options)).planText(cart([HERE, THERE]))).toBe("# nothing to do\n");
  });

  it("this host's own goes before another's at the same address, which goes", async () => {
    const host = createFakeHost();
    const stale = addRemote(host, HERE);
    addBalancer(host, "10.96.0.1", [stale]);
    const proxy = await openProxy(host.world);
    expect(await proxy.apply(cart([HERE]))).toEqual({});
    expect(host.own()).toEqual([expect.stringContaining("to 10.1.1.1 flags")]);
  });

  it("the one that the CNI made for an overlay's source address is used, and left", async () => {
    const host = createFakeHost({ network: "overlay" });
    const settings = { Name: "Calico_ep", MacAddress: "00-15-5d-07-07-07", SchemaVersion: SCHEMA_VERSION };
    host.hns.addEndpoint({ ...settings, HostComputeNetwork: host.networkId, IpConfigurations: [{ IpAddress: "10.1.1.200" }] });
    const external = host.external();
    const proxy = await openProxy(host.world, { sourceVip: "10.1.1.200" });
    expect(await proxy.apply([])).toEqual({});
    await proxy.adopt();
    expect(proxy.planText([])).toBe("# nothing to do\n");
    expect([host.own(), host.external()]).toEqual([[], external]);
  });
});

describe("HNS that is down is not empty", () => {
  it("observing throws", async () => {
    const { host, proxy } = await begin();
    host.hns.beDown(1);
    await expect(proxy.adopt()).rejects.toThrow(/^\[timed_out\] HNS can't be asked/);
  });

  it.each([1, 2, 3, 4, 5])("a plan that meets it ends, and the next process goes on, after %i calls", async (calls) => {
    const { host, proxy } = await begin();
    const inner = host.hns.onChange;
    let left = calls;
    host.hns.onChange = (): void => {
      inner?.();
      if (--left === 0) host.hns.beDown(1);
    };
    const after = cart([HERE, THERE, ALSO_THERE], { externalIPs: ["198.51.100.8"] });
    const failure = await proxy.apply(after).then(
      () => "[timed_out] HNS can't put it: it was the last call",
      (error: unknown) => String(error),
    );
    expect(failure).toContain("[timed_out] HNS can't put it");
    const next = await openProxy(host.world);
    expect(await next.apply(after)).toEqual({});
    expect(lines(host, "loadbalancer")).toHaveLength(2);
  });

  it.each(["before", "after"] as const)(
    "what was in force and is wanted stays in force, whichever call fails %s it is done",
    async (when) => {
      const other = cart([ALSO_THERE], { clusterIP: "10.96.0.2" }).map(renamed);
      const packet = { family: "IPv4", protocol: "TCP", source: "10.1.1.3", destination: "10.96.0.2", port: 80, link: "veth3" } as const;
      const failures: string[] = [];
      for (let afterChanges = 0; afterChanges < 6; afterChanges++) {
        const host = createFakeHost();
        await (await openProxy(host.world)).apply([...cart([HERE]), ...other]);
        const proxy = await openProxy(host.world);
        const gaps = { count: 0 };
        host.onChange(() => (gaps.count += host.trace(packet, () => 0).is === "forward" ? 0 : 1));
        host.setFault({ when, afterChanges });
        const after = [...cart([HERE, THERE], { externalIPs: ["198.51.100.8"] }), ...other];
        await proxy.apply(after).catch((error: unknown) => void failures.push(String(error)));
        expect([gaps.count, host.trace(packet, () => 0).is]).toEqual([0, "forward"]);
      }
      expect(failures).toHaveLength(3);
    },
  );

  it.each(["kept", "lost"] as const)("its restart with load balancers %s ends with all of them", async (balancers) => {
    const { host, proxy } = await begin();
    await proxy.apply(cart([HERE, THERE]));
    const before = host.own();
    host.hns.restart(balancers);
    await proxy.adopt();
    expect(await proxy.apply(cart([HERE, THERE]))).toEqual({});
    expect(host.own()).toEqual(before);
  });
});

it("a source address that HNS fills in by itself is no difference on an L2Bridge, and one on an overlay", async () => {
  for (const [network, options, expected] of [
    ["l2bridge", {}, "# nothing to do\n"],
    ["overlay", { sourceVip: "10.1.1.200" }, expect.stringContaining("change loadbalancer TCP 10.96.0.1:80")],
  ] as const) {
    const host = createFakeHost({ network });
    await (await openProxy(host.world, options)).apply(cart([HERE]));
    for (const id of ids(host)) {
      const known = host.hns.balancers.get(id);
      if (known !== undefined) host.hns.balancers.set(id, { id, settings: { ...known.settings, SourceVIP: "10.1.1.9" } });
    }
    expect((await openProxy(host.world, options)).planText(cart([HERE]))).toEqual(expected);
  }
});

describe("what others left", () => {
  it("kube-proxy's load balancers at wanted addresses are adopted, the others go", async () => {
    const host = createFakeHost();
    const there = addRemote(host, THERE, "02-11-0a-01-02-01");
    const adopted = addBalancer(host, "10.96.0.1", [there]);
    addBalancer(host, "10.96.0.99", [there, addRemote(host, "10.1.2.99")]);
    addBalancer(host, "10.96.0.98", []);
    const proxy = await openProxy(host.world);
    await proxy.apply(cart([THERE]));
    expect(ids(host)).toEqual([adopted]);
    expect(lines(host, "IPv4 remote")).toHaveLength(1);
  });

  it("leftovers name and take what is on the network, of both kinds, and nothing of others", async () => {
    const host = createFakeHost();
    addBalancer(host, "10.96.0.99", [addRemote(host, "10.1.2.99")]);
    const external = host.external();
    const dataplane = await winkernelModule.open(winkernelModule.parseOptions({}), host.world, never);
    const backend = dataplane.family("IPv4");
    expect(await backend.leftovers?.(true, never)).toEqual([]);
    const [leftover] = (await backend.leftovers?.(false, never)) ?? [];
    expect(leftover?.what).toBe("1 load balancer and 1 endpoints of HNS network cbr0");
    await leftover?.remove(never);
    expect([host.own(), host.external()]).toEqual([[], external]);
    expect(await backend.leftovers?.(false, never)).toEqual([]);
  });

  it("where there is no HNS nothing is left, and where there is one its network has to be named", async () => {
    const { world } = createFakeHost();
    const cleanUp = async (change: Partial<typeof world>): Promise<void> => {
      const dataplane = await winkernelModule.open(winkernelModule.parseOptions({}), { ...world, networkName: "", ...change }, never);
      await dataplane.family("IPv4").cleanup?.(never);
    };
    await cleanUp({ hns: noWindows() });
    await expect(cleanUp({})).rejects.toThrow("[invalid_object] nobody named the network");
  });
});

describe("the turn's budget", () => {
  it("one call at least is done, the rest is put off, and the newest comes first afterwards", async () => {
    const { host, proxy } = await begin();
    const over = { untilMs: host.world.clock.nowMs() };
    const { deferred = new Set() } = await proxy.apply(cart([THERE, ALSO_THERE]), over);
    expect([...deferred]).toEqual(["endpoint 10.1.2.2", KEY]);
    let turns = 1;
    for (let left = deferred.size; left > 0; turns++) left = (await proxy.apply(cart([THERE, ALSO_THERE]), over)).deferred?.size ?? 0;
    expect(turns).toBe(3);
    expect(lines(host, "loadbalancer")).toHaveLength(1);
  });

  it("a service that comes while a thousand load balancers wait is in force within its turn", async () => {
    const host = createFakeHost();
    // Each change takes a millisecond.
    const clock = { ...host.world.clock, nowMs: (): number => host.hns.written };
    const proxy = await openProxy({ ...host.world, clock });
    const many = Array.from({ length: 1000 }, (_, index) => `198.51.${100 + Math.floor(index / 250)}.${1 + (index % 250)}`);
    const turn = (): Promise<unknown> => proxy.apply(wanted, { untilMs: clock.nowMs() + 5 });
    let wanted = cart([THERE], { externalIPs: many });
    await turn();
    await turn();
    wanted = [...wanted, ...cart([ALSO_THERE], { clusterIP: "10.96.0.2" }).map(renamed)];
    await turn();
    expect(lines(host, "loadbalancer").filter((line) => line.includes("10.96.0.2"))).toHaveLength(1);
    expect(host.hns.written).toBe(15);
  });
});

function renamed(raw: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return JSON.parse(JSON.stringify(raw).replaceAll('"cart', '"web')) as Readonly<Record<string, unknown>>;
}

it("both families have their own node-port load balancer on the same endpoints", async () => {
  const host = createFakeHost();
  const spec = { type: "NodePort", ports: [{ name: "http", protocol: "TCP", port: 80, nodePort: 30080 }] };
  await (await openProxy(host.world)).apply(cart([HERE], spec));
  await (await openProxy(host.world, {}, "IPv6")).apply(cart(["fd00:1:1::1"], spec));
  expect(lines(host, "loadbalancer IPv4 6 none 30080")).toHaveLength(1);
  expect(lines(host, "loadbalancer IPv6 6 none 30080")).toEqual([expect.stringContaining("flags 2")]);
  expect((await openProxy(host.world)).planText(cart([HERE], spec))).toBe("# nothing to do\n");
  expect(lines(host, "loadbalancer")).toHaveLength(4);
});
