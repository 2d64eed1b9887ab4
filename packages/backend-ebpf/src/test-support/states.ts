import { DEFAULT_SETTINGS } from "@turnout/core";
import type { IPFamily, NodeContext, NodeSettings, ServicePort } from "@turnout/core";
import { fixtureObjects, fixtureState, rawNode } from "@turnout/core/testing";
import type { RawObject, ServiceFixture } from "@turnout/core/testing";
import { ebpfModule } from "../module.ts";
import type { EbpfFacts, EbpfOptions } from "../options.ts";
import type { SkeletonParts } from "../skeleton.ts";

/** Settings of the tests: pods are 10.1.0.0/16 and fd00:1::/32. */
export const SETTINGS: NodeSettings = {
  ...DEFAULT_SETTINGS,
  detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00:1::/32"] },
};

/** Host facts of the tests: node1's addresses. */
export const FACTS: EbpfFacts = {
  addresses: { IPv4: ["127.0.0.1", "172.18.0.1"], IPv6: ["::1", "fd00:18::1"] },
  addressesOfNoProxy: { IPv4: ["127.0.0.1", "172.18.0.1"], IPv6: ["::1", "fd00:18::1"] },
  hostNamespace: "1",
  optedOut: [],
  cgroup: "7",
  hasPackets: true,
  devices: [
    {
      index: 2,
      name: "eth0",
      isNamed: false,
      isWayOut: true,
      addresses: ["172.18.0.1", "fd00:18::1"],
      destinations: ["172.18.0.0/24", "fd00:18::/64"],
    },
    { index: 3, name: "cni0", isNamed: false, isWayOut: false, addresses: ["10.1.1.1"], destinations: ["10.1.1.0/24", "fd00:1:1::/64"] },
    { index: 4, name: "storage", isNamed: true, isWayOut: false, addresses: ["192.0.2.1"], destinations: ["192.0.2.0/24"] },
  ],
};

/** What the skeleton of the family has that keeps nothing for both; the folders are of the tests. */
export const PARTS: SkeletonParts = {
  isKeeper: false,
  programs: { sockets: "v1-00/sockets-00", packets: "v1-00/packets-00" },
  isNamedOnly: false,
};

/** Options of the tests: none. */
export const OPTIONS: EbpfOptions = ebpfModule.parseOptions({ counters: true });

const NODE = rawNode("node1", { addresses: ["172.18.0.1", "fd00:18::1"], podCIDRs: ["10.1.1.0/24", "fd00:1:1::/64"] });

/** The API objects of the node of the tests and of fixtures. */
export function objectsOf(fixtures: readonly ServiceFixture[]): readonly RawObject[] {
  return [NODE, ...fixtures.flatMap((fixture) => fixtureObjects(fixture, endpointAddress))];
}

/** Of the n-th endpoint: 10.1.1.n and fd00:1:1::n; from 256 and 10,000 on further up. */
function endpointAddress(family: IPFamily, n: number): string {
  if (family === "IPv4") return `10.1.${1 + (n >> 8)}.${n & 255}`;
  return n < 10_000 ? `fd00:1:1::${n}` : `fd00:1:1::${Math.floor(n / 10_000)}:${n % 10_000}`;
}

/** The rows and context that a set of fixtures comes to, in one family. */
export function stateOf(
  fixtures: readonly ServiceFixture[],
  family: IPFamily,
  settings: NodeSettings = SETTINGS,
): { readonly rows: ReadonlyMap<string, ServicePort>; readonly node: NodeContext } {
  return fixtureState(fixtures, { family, settings, node: NODE, endpointAddress });
}
