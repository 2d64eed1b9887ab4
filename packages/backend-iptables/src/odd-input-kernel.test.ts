import type { IPFamily, NodeSettings } from "@turnout/core";
import { POD_SETTINGS, rawNode, stateOfObjects, TestProxy } from "@turnout/core/testing";
import type { WantedState } from "@turnout/core/testing";
import type { IptablesVariant } from "@turnout/host/iptables";
import { createTestNamespace } from "@turnout/host/testing";
import type { TestNamespace } from "@turnout/host/testing";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { oneOf } from "@turnout/host/iptables/text";
import { iptablesModule } from "./module.ts";
import { FACTS } from "./test-support/states.ts";

const LONGEST = "n".repeat(63);

interface OddCase {
  readonly name: string;
  readonly family: IPFamily;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly vips: readonly string[];
  readonly endpoints: readonly string[];
  readonly settings: Partial<NodeSettings>;
}

const CASES: readonly OddCase[] = [
  {
    name: "forms of IPv6 addresses and ranges, the highest mark bit, the longest names, affinity of a day",
    family: "IPv6",
    spec: {
      clusterIP: "fd00:96::1:0:0:1",
      clusterIPs: ["fd00:96::1:0:0:1"],
      externalIPs: ["0:0:0:0:0:FFFF:0102:0304", "64:ff9b::102:304", "::102:304", "1:0:0:2:0:0:0:3", "1:0:2:3:4:5:6:7"],
      loadBalancerSourceRanges: ["2001:db8:1::5/48", "::1:2:3/96", "::ffff:0:0/96", "1:2::/128", "::1.2.3.4/128"],
      ports: [
        { name: "p".repeat(15), port: 1, nodePort: 30001 },
        { name: "s", port: 65535, protocol: "SCTP", nodePort: 30001 },
        { name: "u", port: 65535, protocol: "UDP", nodePort: 30001 },
      ],
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_400 } },
    },
    vips: ["fd00:198::6", "FD00:0198::0:1.2.3.4"],
    endpoints: ["fd00:1::1", "::1:2", "64:ff9b::1.2.3.4", "2001:DB8:0:0:1::1"],
    settings: { masqueradeBit: 31 },
  },
  {
    name: "ranges with host bits, the lowest mark bit, affinity of a second",
    family: "IPv4",
    spec: {
      clusterIP: "10.96.0.1",
      clusterIPs: ["10.96.0.1"],
      loadBalancerSourceRanges: ["10.1.2.3/16", "192.168.0.1/32", "128.0.0.0/1", "1.2.3.4/31"],
      ports: [{ port: 65535, nodePort: 30001 }],
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 1 } },
    },
    vips: ["198.51.100.6"],
    endpoints: ["10.1.0.1", "10.1.0.2", "10.1.0.3"],
    settings: { masqueradeBit: 0 },
  },
  {
    name: "a pod's interface with the longest name there may be",
    family: "IPv4",
    spec: {
      clusterIP: "10.96.0.1",
      clusterIPs: ["10.96.0.1"],
      loadBalancerSourceRanges: ["10.0.0.0/8"],
      externalTrafficPolicy: "Local",
      ports: [{ port: 80, nodePort: 30001 }],
    },
    vips: ["198.51.100.6"],
    endpoints: ["10.1.0.1"],
    settings: { detectLocal: { mode: "InterfaceNamePrefix", interfaceNamePrefix: "-veth.1:2@3456" } },
  },
  {
    name: "half of all addresses are allowed, all are pods",
    family: "IPv4",
    spec: {
      clusterIP: "10.96.0.1",
      clusterIPs: ["10.96.0.1"],
      loadBalancerSourceRanges: ["0.0.0.0/1"],
      externalTrafficPolicy: "Local",
      healthCheckNodePort: 31_000,
      ports: [{ port: 80, nodePort: 30001 }],
    },
    vips: ["198.51.100.6"],
    endpoints: ["10.1.0.1", "10.1.0.2"],
    settings: { detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["0.0.0.0/0", "::/0"] } },
  },
];

/** What a case comes to. */
function stateOf({ family, spec, vips, endpoints, settings }: OddCase): WantedState {
  const ports = (spec["ports"] as readonly { readonly name?: string; readonly protocol?: string }[]).map(
    ({ name = "", protocol = "TCP" }) => ({ name, port: 8080, protocol }),
  );
  const metadata = { namespace: LONGEST, name: "a".repeat(63) };
  return stateOfObjects(
    [
      rawNode("node1", { addresses: ["172.18.0.1", "fd00:18::1"] }),
      {
        kind: "Service",
        metadata,
        spec: { type: "LoadBalancer", ipFamilies: [family], ...spec },
        status: { loadBalancer: { ingress: vips.map((vip) => ({ ip: vip })) } },
      },
      {
        kind: "EndpointSlice",
        metadata: { namespace: LONGEST, name: "slice", labels: { "kubernetes.io/service-name": metadata.name } },
        addressType: family,
        ports,
        endpoints: endpoints.map((address, index) => ({ addresses: [address], nodeName: index % 2 === 0 ? "node1" : "node2" })),
      },
    ],
    { family, settings: { ...POD_SETTINGS, ...settings } },
  );
}

describe("odd input", needs("root", "netns", "iptables-legacy>=1.8.0", "iptables-nft>=1.8.0"), () => {
  let namespace: TestNamespace;
  beforeAll(() => {
    namespace = createTestNamespace("tiptodd");
  });
  afterAll(() => namespace?.remove());

  describe.each<IptablesVariant>(["legacy", "nft"])("%s variant", (variant) => {
    it.each(CASES.map((odd) => [odd.name, odd] as const))("is read back word for word: %s", async (_, odd) => {
      const proxy = await TestProxy.open(iptablesModule, namespace.world, { raw: { variant }, family: odd.family, host: FACTS, stateOf });
      await proxy.adopt();
      await proxy.sync(odd);
      await proxy.adopt();
      expect([...proxy.ledger.wanted().keys()].some((id) => id.startsWith("chain nat KUBE-FW-"))).toBe(true);
      expect(proxy.planText()).toBe("# nothing to do\n");
    });

    it("keeps every probability as it is written, kube-proxy's too", async () => {
      const parts = [...Array.from({ length: 300 }, (_, index) => index + 2), 999, 1_000, 3_333, 5_000, 9_999, 65_536];
      for (const write of [oneOf, (part: number): string => `-m statistic --mode random --probability ${(1 / part).toFixed(10)}`]) {
        const input = `*nat\n:ODD - [0:0]\n${parts.map((part) => `-A ODD ${write(part)}\n`).join("")}COMMIT\n`;
        await namespace.run(`iptables-${variant}-restore`, ["-w", "10", "--noflush"], input);
        const saved = await namespace.run(`iptables-${variant}-save`, ["-t", "nat"]);
        const kept = saved.split("\n").flatMap((line) => (line.startsWith("-A ODD ") ? [line.slice("-A ODD ".length).trimEnd()] : []));
        expect(kept).toEqual(parts.map(oneOf));
      }
    });
  });
});
