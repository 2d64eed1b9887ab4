import type { Packet } from "@turnout/conformance";
import type { Plain } from "@turnout/core";
import { beforeEach, describe, expect, it } from "vitest";
import { SETS, setName } from "./names.ts";
import { makeSetLine, setObject } from "./sets.ts";
import { KUBE_PROXY_SETS } from "./test-support/former-kube-proxy.ts";
import { cart, openProxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";
import type { IpvsFakeHost } from "./testing/index.ts";

const ONE = "10.1.1.1";
const PACKET: Packet = { family: "IPv4", protocol: "TCP", source: "10.1.1.9", destination: "10.96.0.1", port: 80, link: "veth9" };
const NODE_PORT = { type: "NodePort", ports: [{ name: "http", protocol: "TCP", port: 80, nodePort: 30_080 }] };

const never = new AbortController().signal;

let host: IpvsFakeHost;
beforeEach(() => {
  host = createFakeHost();
});

/** Make a virtual server that is somebody else's. */
function addExternal(address: string, port: number): void {
  const service = {
    family: "IPv4",
    protocol: "TCP",
    address,
    port,
    scheduler: "rr",
    flags: 0,
    timeoutSeconds: 0,
    clientPrefixLength: 32,
  } as const;
  expect(host.ipvs.run({ verb: "add-service", service })).toEqual([undefined]);
}

function addresses(): readonly string[] {
  return host.ipvs.virtualServers().map(({ address, port }) => `${address}:${port}`);
}

/** Have one process make the Service, and another one find that it is gone. */
async function serveThenRemove(spec: Readonly<Record<string, unknown>>, options: Readonly<Record<string, Plain>>): Promise<void> {
  await (await openProxy(host.world, options)).sync(cart([ONE], spec));
  await (await openProxy(host.world, options)).sync([]);
}

describe("virtual servers of others", () => {
  it("stay where the port is that of a node port, but the address isn't the host's", async () => {
    addExternal("192.0.2.90", 30_080);
    await (await openProxy(host.world)).sync(cart([ONE], NODE_PORT));
    expect(await (await openProxy(host.world)).sync(cart([ONE], NODE_PORT))).toBe(0);
    expect(addresses()).toContain("192.0.2.90:30080");
  });

  it("stay in excluded ranges at an address that a Service has, too, and the Service's own goes with it", async () => {
    addExternal("10.96.0.1", 25);
    await serveThenRemove({}, { excludeCIDRs: ["10.96.0.0/12"] });
    expect(addresses()).toContain("10.96.0.1:25");
    expect(addresses()).not.toContain("10.96.0.1:80");
  });
});

it("a kube-proxy in ipvs mode that comes after Turnout can make its sets", async () => {
  await (await openProxy(host.world)).sync(cart([ONE], NODE_PORT));
  expect(KUBE_PROXY_SETS).toHaveLength(Object.keys(SETS).filter((name) => name.startsWith("KUBE-")).length);
  for (const line of KUBE_PROXY_SETS) expect(host.ipset.run(`${line} -exist`)).toMatchObject({ code: 0, stderr: "" });
});

it("a set has more room than kube-proxy's from the start when there are more entries", () => {
  const lines = [65_536, 65_537].map((entries) => makeSetLine(setObject("KUBE-LOOP-BACK", "IPv6"), entries, "IPv6"));
  expect(lines).toEqual(
    [65_536, 1_048_576].map((space) => `create ${setName("KUBE-LOOP-BACK", "IPv6")} hash:ip,port,ip family inet6 maxelem ${space}`),
  );
});

it("a set that kube-proxy made too small for all entries is exchanged for a larger one", async () => {
  expect(host.ipset.run("restore", "create KUBE-LOOP-BACK hash:ip,port,ip family inet maxelem 1\n")).toMatchObject({ code: 0 });
  const proxy = await openProxy(host.world);
  await proxy.sync(cart([ONE, "10.1.2.1", "10.1.2.2"]));
  expect(proxy.ledger.failed.size).toBe(0);
  const [set, ...others] = [...host.ipset.sets].filter(([name]) => /LOOP-BACK|LARGER/.test(name));
  expect([set?.[0], set?.[1].entries.size, others]).toEqual(["KUBE-LOOP-BACK", 3, []]);
});

it("a virtual server of a node port goes also when the host has lost the address before", async () => {
  await (await openProxy(host.world)).sync(cart([ONE], NODE_PORT));
  expect(addresses()).toContain("172.18.0.1:30080");
  host.setAddresses([]);
  await (await openProxy(host.world)).sync([]);
  expect(addresses()).not.toContain("172.18.0.1:30080");
});

describe("an address", () => {
  const SSH = { ...PACKET, port: 22 };

  async function bound(): Promise<readonly string[]> {
    return (await host.world.netlink.addresses("IPv4")).flatMap(({ ip, link }) => (link === "kube-ipvs0" ? [ip] : []));
  }

  it("isn't bound where nothing would keep the host's ports from answering there", async () => {
    // Somebody's set of another type: it takes no addresses.
    host.ipset.run("create KUBE-IPVS-IPS bitmap:port range 0-65535");
    const proxy = await openProxy(host.world);
    await proxy.sync(cart([ONE]));
    expect(await bound()).toEqual([]);
    expect(String(proxy.ledger.failed.get("address 10.96.0.1"))).toContain("its place in KUBE-IPVS-IPS was refused");
  });

  it("that can't be removed leads to no port of the host's", async () => {
    const { exec } = host.world;
    const run: typeof exec.run = (file, args, options) =>
      options?.input?.includes("address del") === true
        ? Promise.resolve({ code: 2, stdout: "", stderr: "RTNETLINK answers: Operation not permitted\n" })
        : exec.run(file, args, options);
    const proxy = await openProxy({ ...host.world, exec: { run, open: (file, args) => exec.open(file, args) } });
    await proxy.sync(cart([ONE]));
    await proxy.sync([]);
    expect(await bound()).toEqual(["10.96.0.1"]);
    expect(host.trace(SSH, () => 0)).toMatchObject({ is: "reject" });
  });

  it("that somebody has removed is no failure when it goes", async () => {
    const proxy = await openProxy(host.world);
    await proxy.sync(cart([ONE]));
    await host.world.exec.run("ip", ["-4", "-batch", "-"], { input: "address del 10.96.0.1/32 dev kube-ipvs0\n" });
    expect(await bound()).toEqual([]);
    await proxy.sync([]);
    expect([...proxy.ledger.failed]).toEqual([]);
  });
});

it.each(["Cluster", "Local"])(
  "who was to be restricted by source ranges, and isn't, is served to nobody (%s)",
  async (externalTrafficPolicy) => {
    host.ipset.run("create KUBE-LOAD-BALANCER-FW bitmap:port range 0-65535");
    const spec = { type: "LoadBalancer", externalTrafficPolicy, loadBalancerSourceRanges: ["203.0.113.0/24"], ports: NODE_PORT.ports };
    const proxy = await openProxy(host.world);
    await proxy.sync(cart([ONE], spec, [{ ip: "198.51.100.7" }]));
    const client: Packet = { ...PACKET, source: "192.0.2.10", destination: "198.51.100.7", link: "eth0" };
    expect(host.trace(client, () => 0)).toMatchObject({ is: "reject" });
  },
);

it("two ports of one Service that come upon one inner virtual server are reported", async () => {
  const ports = [80, 80 + 0x8000].map((port, index) => ({ name: `p${index}`, protocol: "TCP", port, nodePort: 30_080 + index }));
  const proxy = await openProxy(host.world);
  await proxy.sync(cart([ONE], { type: "LoadBalancer", externalTrafficPolicy: "Local", ports }, [{ ip: "198.51.100.7" }]));
  expect([...proxy.ledger.defects.keys()]).toEqual(["service TCP 10.96.0.1:32848", "service TCP 10.96.0.1:80"]);
  // What is in force is read as it was written.
  expect(proxy.ledger.differencesTo(await proxy.backend.observe(never))).toEqual([]);
});

it("where the kernel refuses a virtual server its port is refused, and doesn't lead to the host's own", async () => {
  const proxy = await openProxy(host.world, { schedulers: { "shop/cart": "nope" } });
  await proxy.sync(cart([ONE]));
  expect(addresses().filter((one) => one.startsWith("10.96."))).toEqual([]);
  expect(host.trace(PACKET, () => 0)).toMatchObject({ is: "reject" });
});

it("who is sent elsewhere, since there is no endpoint here, is masqueraded", async () => {
  const spec = { type: "LoadBalancer", externalTrafficPolicy: "Local", ports: NODE_PORT.ports };
  const proxy = await openProxy(host.world, { "no-local-endpoints": "cluster" });
  await proxy.sync(cart(["10.1.2.1"], spec, [{ ip: "198.51.100.7" }]));
  const client: Packet = { ...PACKET, source: "192.0.2.10", destination: "198.51.100.7", link: "eth0" };
  expect(host.trace(client, () => 0)).toMatchObject({ is: "forward", endpoint: "10.1.2.1:8080", masquerade: true });
});
