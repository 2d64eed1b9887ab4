import type { IPFamily } from "../model/api-objects.ts";
import type { NodeSettings } from "../model/rows.ts";
import { rawNode, rawService, rawSlice } from "./objects.ts";
import type { EndpointShort, RawObject } from "./objects.ts";
import { stateOfObjects } from "./view.ts";
import type { WantedState } from "./view.ts";

/** A Service to be, with everything optional but its name and number. */
export interface ServiceFixture {
  readonly name: string;
  /** Makes its addresses: cluster IPs 10.96.0.n and fd00:96::n, and those of its endpoints. */
  readonly number: number;
  /** Default "TCP". */
  readonly protocol?: string;
  readonly spec?: RawObject;
  readonly loadBalancerIPs?: readonly string[];
  /** How many endpoints are on node1, and on node2; default none. */
  readonly local?: number;
  readonly remote?: number;
}

/** What fixtures come to, and where. */
export interface FixtureSetting {
  readonly family: IPFamily;
  /** Replace fields of POD_SETTINGS. */
  readonly settings?: Partial<NodeSettings>;
  /** Default node1 with 172.18.0.1 and fd00:18::1. */
  readonly node?: RawObject;
  /** The address of the n-th endpoint; default 10.1.0.n and fd00:1::n. The i-th local one of a fixture is n = 10 * number + i, of the remote ones five more. */
  readonly endpointAddress?: (family: IPFamily, n: number) => string;
}

const NODE = rawNode("node1", { addresses: ["172.18.0.1", "fd00:18::1"] });

/** The API objects of a fixture: one Service of both families with one port main 80, and one slice per family with port 8080. */
export function fixtureObjects(
  { name, number, protocol = "TCP", spec = {}, loadBalancerIPs = [], local = 0, remote = 0 }: ServiceFixture,
  endpointAddress: (family: IPFamily, n: number) => string = nearAddress,
): readonly RawObject[] {
  const clusterIP = `10.96.${number >> 8}.${number & 255}`;
  const { nodePort, ...rest } = spec;
  const ports = [{ name: "main", port: 80, protocol, ...(nodePort === undefined ? {} : { nodePort }) }];
  const both = { clusterIP, clusterIPs: [clusterIP, `fd00:96::${number}`], ipFamilies: ["IPv4", "IPv6"], ports };
  const service = rawService(name, { ...both, ...rest }, { ingress: loadBalancerIPs.map((ip) => ({ ip })) });
  const slice = (family: IPFamily): RawObject => {
    const endpoints = (count: number, first: number, node: string): readonly EndpointShort[] =>
      Array.from({ length: count }, (_, index) => ({ ip: endpointAddress(family, number * 10 + first + index), node }));
    return rawSlice(name, [...endpoints(local, 0, "node1"), ...endpoints(remote, 5, "node2")], {
      name: `${name}-${family.toLowerCase()}`,
      addressType: family,
      ports: [{ name: "main", port: 8080, protocol }],
    });
  };
  return [service, slice("IPv4"), slice("IPv6")];
}

/** The rows and context that a set of fixtures comes to on node1, in one family. */
export function fixtureState(
  fixtures: readonly ServiceFixture[],
  { family, settings = {}, node = NODE, endpointAddress }: FixtureSetting,
): WantedState {
  return stateOfObjects([node, ...fixtures.flatMap((fixture) => fixtureObjects(fixture, endpointAddress))], { family, settings });
}

/** One Service of each treatment there is. */
export const SHOWCASE: readonly ServiceFixture[] = [
  { name: "plain", number: 1, local: 1, remote: 2 },
  { name: "internal-local", number: 2, local: 1, remote: 2, spec: { internalTrafficPolicy: "Local" } },
  { name: "nowhere", number: 3 },
  { name: "elsewhere", number: 4, remote: 2, spec: { internalTrafficPolicy: "Local" } },
  { name: "node-port", number: 5, local: 1, remote: 1, spec: { type: "NodePort", nodePort: 30005 } },
  {
    name: "balanced",
    number: 6,
    local: 2,
    remote: 1,
    spec: { type: "LoadBalancer", externalTrafficPolicy: "Local", loadBalancerSourceRanges: ["203.0.113.0/24", "198.51.100.7/32"] },
    loadBalancerIPs: ["198.51.100.6"],
  },
  { name: "sticky", number: 7, local: 1, remote: 1, spec: { sessionAffinity: "ClientIP", type: "NodePort", nodePort: 30007 } },
  { name: "dns", number: 8, protocol: "UDP", remote: 2, spec: { externalIPs: ["198.51.100.8"] } },
];

function nearAddress(family: IPFamily, n: number): string {
  return family === "IPv4" ? `10.1.0.${n}` : `fd00:1::${n}`;
}
