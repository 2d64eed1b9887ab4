import type { Packet } from "@turnout/conformance";
import { expect, it } from "vitest";
import { MARK_FLAG } from "./servers.ts";
import { leaveKubeProxyState } from "./test-support/former-kube-proxy.ts";
import { cart, openProxy } from "./test-support/proxy.ts";
import { createFakeHost } from "./testing/index.ts";

const SERVICE = cart(
  ["10.1.1.1", "10.1.2.1"],
  { type: "LoadBalancer", ports: [{ name: "http", protocol: "TCP", port: 80, nodePort: 30080 }] },
  [{ ip: "198.51.100.7" }],
);
const PACKET: Packet = { family: "IPv4", protocol: "TCP", source: "10.1.1.9", destination: "10.96.0.1", port: 80, link: "veth9" };

it("what kube-proxy in ipvs mode left is adopted: only what differs is written", async () => {
  const host = createFakeHost();
  await leaveKubeProxyState(host);
  const proxy = await openProxy(host.world);
  await expect(proxy.planText(SERVICE)).toMatchFileSnapshot("../test/golden/adopted-from-kube-proxy.txt");
});

it("no virtual server, address or set that kube-proxy left is touched but for a mark at the host's addresses, and connections go on", async () => {
  const host = createFakeHost();
  await leaveKubeProxyState(host);
  const { written } = host.ipvs;
  const sets = [...host.ipset.sets.keys()];
  host.connect(PACKET, () => 0);
  const connected = host.ipvs.virtualServers();
  const proxy = await openProxy(host.world);
  await proxy.sync(SERVICE);
  const marked = connected.map((server) => (server.port === 30_080 ? { ...server, flags: MARK_FLAG } : server));
  expect([proxy.ledger.failed.size, host.ipvs.written, host.ipvs.virtualServers()]).toEqual([0, written + 1, marked]);
  expect([...host.ipset.sets.keys()].slice(0, sets.length)).toEqual(sets);
  expect(await proxy.sync(SERVICE)).toBe(0);
});

it("what kube-proxy in ipvs mode left goes when another backend has taken over", async () => {
  const host = createFakeHost();
  const before = host.ipvs.virtualServers();
  await leaveKubeProxyState(host);
  const { backend } = await openProxy(host.world);
  const never = new AbortController().signal;
  const [leftover] = (await backend.leftovers?.(false, never)) ?? [];
  expect(leftover?.what).toBe("3 virtual servers of ipvs, and the addresses on kube-ipvs0");
  await leftover?.remove(never);
  expect([host.ipvs.virtualServers(), [...host.ipset.sets.keys()]]).toEqual([before, ["SOMEBODYS"]]);
  for (const table of ["nat", "filter"]) {
    const { stdout } = await host.world.exec.run("iptables-nft-save", ["-t", table]);
    expect(stdout.match(/KUBE-(?:SERVICES|LOAD-BALANCER|IPVS-FILTER|IPVS-OUT-FILTER|NODE-PORT)/g)).toBeNull();
  }
});

it("what kube-proxy in ipvs mode wrote stays when we clean up, and goes once it was adopted", async () => {
  const host = createFakeHost();
  const before = host.ipvs.virtualServers();
  await leaveKubeProxyState(host);
  const theirs = [host.ipvs.virtualServers(), [...host.ipset.sets.keys()]];
  const never = new AbortController().signal;
  const { backend } = await openProxy(host.world);
  await backend.cleanup?.(never);
  expect([host.ipvs.virtualServers(), [...host.ipset.sets.keys()]]).toEqual(theirs);
  const proxy = await openProxy(host.world);
  await proxy.sync(SERVICE);
  await proxy.backend.cleanup?.(never);
  expect([host.ipvs.virtualServers(), [...host.ipset.sets.keys()]]).toEqual([before, ["SOMEBODYS"]]);
});
