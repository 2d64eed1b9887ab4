import { objectsOf } from "./sample-objects.ts";
import type { Sample, SampleEndpoint, SamplePort } from "./sample-objects.ts";

/** Pods of the samples, both families. */
export const SAMPLE_POD_CIDRS: readonly string[] = ["10.1.0.0/16", "fd00:1::/32"];

const HTTP: readonly SamplePort[] = [{ name: "http", port: 80, target: 8080 }];

type UnnumberedSample = Omit<Sample, "number">;

const here = (number: number, rest: Partial<SampleEndpoint> = {}): SampleEndpoint => ({ on: "node1", number, ...rest });
const there = (number: number, rest: Partial<SampleEndpoint> = {}): SampleEndpoint => ({ on: "node2", number, ...rest });
const LEAVING = { ready: false, serving: true, terminating: true };

const external = (type: "NodePort" | "LoadBalancer", policy: "Cluster" | "Local"): Readonly<Record<string, unknown>> => ({
  type,
  externalTrafficPolicy: policy,
});

/** Cluster IPs alone: kinds of ports and of endpoints. */
const INTERNAL: readonly UnnumberedSample[] = [
  { name: "single", ports: [{ port: 80, target: 8080 }], endpoints: [there(1)] },
  { name: "three", ports: HTTP, endpoints: [here(1), there(1), there(2)] },
  {
    name: "many-ports",
    ports: [
      { name: "dns", port: 53, protocol: "UDP", target: 5353 },
      { name: "dns-tcp", port: 53, target: 5353 },
      { name: "signal", port: 3868, protocol: "SCTP", target: 3868 },
      { name: "metrics", port: 9153, target: 9153, targetPort: "prom" },
    ],
    endpoints: [here(2), there(3)],
  },
  { name: "nowhere", ports: HTTP },
  { name: "not-ready", ports: HTTP, endpoints: [here(3, { ready: false, serving: false }), there(4, { ready: false, serving: false })] },
  { name: "leaving", ports: HTTP, endpoints: [here(4, LEAVING), there(5, LEAVING)] },
  { name: "part-leaving", ports: HTTP, endpoints: [here(5, LEAVING), there(6)] },
  { name: "near", ports: HTTP, endpoints: [here(6, { zones: ["zone-a"] }), there(7, { zones: ["zone-b"] })] },
  { name: "internal-local", ports: HTTP, spec: { internalTrafficPolicy: "Local" }, endpoints: [here(7), there(8)] },
  { name: "internal-elsewhere", ports: HTTP, spec: { internalTrafficPolicy: "Local" }, endpoints: [there(9)] },
  { name: "sticky", ports: HTTP, spec: { sessionAffinity: "ClientIP", ...affinityFor(10_800) }, endpoints: [here(8), there(10)] },
  { name: "four-only", ports: HTTP, families: ["IPv4"], endpoints: [there(11)] },
  { name: "six-only", ports: HTTP, families: ["IPv6"], endpoints: [there(11)] },
];

/** Services that kube-proxy leaves alone. */
const IGNORED: readonly UnnumberedSample[] = [
  { name: "headless", ports: HTTP, spec: { clusterIP: "None", clusterIPs: ["None"] }, endpoints: [here(1)] },
  { name: "other-proxy", ports: HTTP, labels: { "service.kubernetes.io/service-proxy-name": "other" }, endpoints: [here(1)] },
  { name: "elsewhere-named", ports: HTTP, spec: { type: "ExternalName", externalName: "example.com" } },
];

/** Node ports, external and load-balancer addresses, under both policies. */
const EXTERNAL: readonly UnnumberedSample[] = [
  {
    name: "node-port",
    ports: [{ name: "http", port: 80, target: 8080, nodePort: 30_001 }],
    spec: external("NodePort", "Cluster"),
    endpoints: [here(9), there(12)],
  },
  {
    name: "node-port-local",
    ports: [{ name: "http", port: 80, target: 8080, nodePort: 30_002 }],
    spec: external("NodePort", "Local"),
    endpoints: [here(10), there(13)],
  },
  {
    name: "node-port-sticky",
    ports: [{ name: "http", port: 80, target: 8080, nodePort: 30_003 }],
    spec: { ...external("NodePort", "Local"), sessionAffinity: "ClientIP", ...affinityFor(60) },
    endpoints: [here(11), here(12), there(14)],
  },
  {
    name: "node-port-elsewhere",
    ports: [{ name: "http", port: 80, target: 8080, nodePort: 30_004 }],
    spec: external("NodePort", "Local"),
    endpoints: [there(15)],
  },
  {
    name: "node-port-nowhere",
    ports: [{ name: "sig", port: 3868, protocol: "SCTP", target: 3868, nodePort: 30_005 }],
    spec: external("NodePort", "Cluster"),
  },
  {
    name: "both-local",
    ports: [{ name: "dns", port: 53, protocol: "UDP", target: 5353, nodePort: 30_006 }],
    spec: { ...external("NodePort", "Local"), internalTrafficPolicy: "Local" },
    endpoints: [here(13), there(16)],
  },
  { name: "external-ip", ports: HTTP, externalIPs: [1], endpoints: [here(14), there(17)] },
  { name: "external-ip-local", ports: HTTP, externalIPs: [2], spec: external("NodePort", "Local"), endpoints: [here(15), there(18)] },
  { name: "external-ip-elsewhere", ports: HTTP, externalIPs: [3], spec: external("NodePort", "Local"), endpoints: [there(19)] },
  { name: "external-ip-nowhere", ports: HTTP, externalIPs: [4] },
];

const BALANCED: readonly UnnumberedSample[] = [
  {
    name: "balanced",
    ports: [{ name: "http", port: 80, target: 8080, nodePort: 30_010 }],
    spec: external("LoadBalancer", "Cluster"),
    ingress: [10],
    endpoints: [here(16), there(20)],
  },
  {
    name: "balanced-local",
    ports: [
      { name: "http", port: 80, target: 8080, nodePort: 30_011 },
      { name: "tls", port: 443, target: 8443, nodePort: 30_012 },
    ],
    spec: { ...external("LoadBalancer", "Local"), healthCheckNodePort: 32_001 },
    ingress: [11],
    endpoints: [here(17), there(21)],
  },
  {
    name: "balanced-local-leaving",
    ports: HTTP,
    spec: { ...external("LoadBalancer", "Local"), healthCheckNodePort: 32_002, allocateLoadBalancerNodePorts: false },
    ingress: [12],
    endpoints: [here(18, LEAVING), there(22)],
  },
  {
    name: "balanced-elsewhere",
    ports: HTTP,
    spec: { ...external("LoadBalancer", "Local"), healthCheckNodePort: 32_003, allocateLoadBalancerNodePorts: false },
    ingress: [13],
    endpoints: [there(23)],
  },
  { name: "balanced-nowhere", ports: HTTP, spec: external("LoadBalancer", "Cluster"), ingress: [14] },
  {
    name: "ranged",
    ports: HTTP,
    spec: { ...external("LoadBalancer", "Cluster"), loadBalancerSourceRanges: ["203.0.113.0/24", "198.51.100.7/32", "fd00:203::/64"] },
    ingress: [15],
    endpoints: [here(19), there(24)],
  },
  {
    name: "ranged-with-node",
    ports: HTTP,
    spec: {
      ...external("LoadBalancer", "Local"),
      loadBalancerSourceRanges: ["172.18.0.0/24", "fd00:18::/64"],
      healthCheckNodePort: 32_004,
    },
    ingress: [16, 17],
    endpoints: [here(20), there(25)],
  },
  {
    name: "ranged-elsewhere",
    ports: HTTP,
    spec: { ...external("LoadBalancer", "Local"), loadBalancerSourceRanges: ["203.0.113.0/24"], healthCheckNodePort: 32_005 },
    ingress: [18],
    endpoints: [there(26)],
  },
  {
    name: "ranged-nowhere",
    ports: HTTP,
    spec: { ...external("LoadBalancer", "Cluster"), loadBalancerSourceRanges: ["203.0.113.0/24"] },
    ingress: [19],
  },
  { name: "by-proxy", ports: HTTP, spec: external("LoadBalancer", "Cluster"), ingress: [20], ingressMode: "Proxy", endpoints: [there(27)] },
  {
    name: "everything",
    ports: [{ name: "http", port: 80, target: 8080, nodePort: 30_013 }],
    spec: { ...external("LoadBalancer", "Local"), internalTrafficPolicy: "Local", healthCheckNodePort: 32_006 },
    externalIPs: [21],
    ingress: [22],
    endpoints: [here(21), here(22), there(28), there(29)],
  },
];

/** Enough endpoints for kube-proxy to call the cluster large (more than 1,000), and little text: none of them is ready. */
const CROWD: Sample = {
  name: "crowd",
  number: 250,
  ports: Array.from({ length: 21 }, (_, index) => ({ name: `p${index}`, port: 9000 + index, target: 9000 + index })),
  endpoints: Array.from({ length: 48 }, (_, index) => there(100 + index, { ready: false, serving: false })),
};

/** A few treatments that settings change. */
const FEW: readonly string[] = ["three", "node-port-local", "node-port-nowhere", "ranged-with-node"];

// Numbers go by the whole list, so that a service looks the same in each set.
const ALL: readonly Sample[] = [...INTERNAL, ...IGNORED, ...EXTERNAL, ...BALANCED].map((sample, index) => ({
  ...sample,
  number: index + 10,
}));

/** Sets of objects by name. */
export const SAMPLE_SETS: Readonly<Record<string, readonly Record<string, unknown>[]>> = {
  everything: objectsOf(ALL),
  few: objectsOf(ALL.filter(({ name }) => FEW.includes(name))),
  large: objectsOf([...ALL.filter(({ name }) => FEW.includes(name)), CROWD]),
};

/** One recording. */
export interface SampleCase {
  readonly name: string;
  readonly set: string;
  /** Fields of KubeProxyConfiguration. */
  readonly fields: Readonly<Record<string, unknown>>;
}

const BY_CIDR = { clusterCIDR: SAMPLE_POD_CIDRS.join(",") };

/** Everything that is recorded. */
export const SAMPLE_CASES: readonly SampleCase[] = [
  { name: "everything", set: "everything", fields: BY_CIDR },
  { name: "large", set: "large", fields: BY_CIDR },
  { name: "masquerade-all", set: "few", fields: { ...BY_CIDR, iptables: { masqueradeAll: true } } },
  { name: "masquerade-bit", set: "few", fields: { ...BY_CIDR, iptables: { masqueradeBit: 20 } } },
  { name: "no-detector", set: "few", fields: {} },
  { name: "node-cidr", set: "few", fields: { detectLocalMode: "NodeCIDR" } },
  { name: "bridge", set: "few", fields: { detectLocalMode: "BridgeInterface", detectLocal: { bridgeInterface: "br0" } } },
  { name: "prefix", set: "few", fields: { detectLocalMode: "InterfaceNamePrefix", detectLocal: { interfaceNamePrefix: "veth" } } },
  { name: "node-port-addresses", set: "few", fields: { ...BY_CIDR, nodePortAddresses: ["172.18.0.0/24", "fd00:18::/64"] } },
  { name: "no-localhost", set: "few", fields: { ...BY_CIDR, iptables: { localhostNodePorts: false } } },
  { name: "liberal", set: "few", fields: { ...BY_CIDR, conntrack: { maxPerCore: 0, min: 0, tcpBeLiberal: true } } },
];

function affinityFor(timeoutSeconds: number): Readonly<Record<string, unknown>> {
  return { sessionAffinityConfig: { clientIP: { timeoutSeconds } } };
}
