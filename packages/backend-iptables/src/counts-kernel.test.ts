import type { ServiceFixture } from "@turnout/core/testing";
import type { IptablesVariant } from "@turnout/host/iptables";
import { createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { iptablesModule } from "./module.ts";
import { proxyOf } from "./test-support/states.ts";

const { signal } = new AbortController();

const balanced = (number: number, spec: object): Pick<ServiceFixture, "loadBalancerIPs" | "spec"> => ({
  loadBalancerIPs: [`198.51.100.${number}`],
  spec: { type: "LoadBalancer", ...spec },
});
/** All of UDP: a client is done when it has sent, whatever becomes of it. */
const FIXTURES: readonly ServiceFixture[] = [
  { name: "web", number: 1, remote: 2 },
  { name: "empty", number: 2 },
  { name: "elsewhere", number: 3, remote: 1, ...balanced(3, { externalTrafficPolicy: "Local", nodePort: 30_003 }) },
  { name: "ranged", number: 4, remote: 1, ...balanced(4, { loadBalancerSourceRanges: ["203.0.113.0/24"], nodePort: 30_004 }) },
  { name: "port", number: 5, remote: 1, spec: { type: "NodePort", nodePort: 30_005 } },
].map((fixture) => ({ protocol: "UDP", ...fixture }));

describe("counting on a real kernel", needs("root", "netns", "iptables", "ip", "sysctl"), () => {
  let node: TestNamespace;
  let client: TestNamespace;
  const ip = async (where: TestNamespace, line: string): Promise<string> => await where.run("ip", line.split(" "));
  beforeAll(async () => {
    [node, client] = [createTestNamespace("tiptc"), createTestNamespace("tiptc-client")];
    await ip(node, `link add up0 type veth peer name up0 netns ${client.name}`);
    for (const [where, address] of [
      [node, "172.18.0.1/24"],
      [client, "172.18.0.9/24"],
    ] as const) {
      await ip(where, "link set up0 up");
      await ip(where, `address add ${address} dev up0`);
    }
    await ip(client, "route add default via 172.18.0.1");
    // What is refused is on its way to somewhere else.
    await ip(node, "route add default via 172.18.0.8");
    await node.run("sysctl", ["-qw", "net.ipv4.ip_forward=1"]);
  });
  afterAll(() => {
    node?.remove();
    client?.remove();
  });

  async function send(...targets: readonly (readonly [address: string, port: number])[]): Promise<void> {
    const script = targets.map(([address, port]) => `echo x >/dev/udp/${address}/${port}; true`).join("\n");
    await client.run("bash", ["-c", script]);
  }

  it.each<IptablesVariant>(["legacy", "nft"])("tells for each Service what came to it, as the kernel counted: %s", async (variant) => {
    const dataplane = await iptablesModule.open(iptablesModule.parseOptions({ variant }), node.world, signal);
    const proxy = proxyOf(dataplane.family("IPv4"), "IPv4");
    await proxy.sync(FIXTURES);
    expect(await proxy.counts()).toEqual({});
    await send(["10.96.0.1", 80], ["10.96.0.1", 80], ["10.96.0.1", 80], ["10.96.0.2", 80], ["172.18.0.1", 30_005], ["10.96.0.99", 80]);
    await send(["198.51.100.3", 80], ["198.51.100.4", 80], ["198.51.100.4", 80]);
    expect(await proxy.counts()).toEqual({
      "shop/web:main/UDP": { connections: 3 },
      "shop/empty:main/UDP": { rejects: 1 },
      "shop/elsewhere:main/UDP": { dropsWithoutLocal: 1 },
      "shop/ranged:main/UDP": { dropsOutsideRanges: 2 },
      "shop/port:main/UDP": { connections: 1 },
    });
    // Another process finds the same.
    const next = proxyOf(dataplane.family("IPv4"), "IPv4");
    await next.adopt();
    expect([await next.sync(FIXTURES), (await next.counts())["shop/web:main/UDP"]]).toEqual([0, { connections: 3 }]);
    await next.backend.cleanup?.(signal);
    await dataplane.close(signal);
  });
});
