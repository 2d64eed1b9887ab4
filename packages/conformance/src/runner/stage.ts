import { FAMILIES } from "@turnout/core";
import type { IPFamily, NodeSettings } from "@turnout/core";
import { rawNode, rawServiceCIDR } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import { UPLINK } from "../oracle/packet.ts";
import type { HostAddress } from "./fake-host.ts";

export { UPLINK };

/** Somebody in the cluster that every scenario plays in. */
export interface StagePeer {
  readonly name: string;
  readonly kind: "node" | "pod" | "client";
  readonly addresses: Readonly<Record<IPFamily, string>>;
  /** The node a pod is on, or the node itself. */
  readonly node?: string;
  /** By which of node1's links its packets come in; "" for node1's own. */
  readonly link: string;
}

/** The node whose proxy is looked at. */
export const STAGE_NODE = "node1";

/** The port every pod serves all protocols on. */
export const SERVER_PORT = 8080;

/** Ranges of the stage; the same as the laboratory's, so that scenarios can be played with real packets. */
export const STAGE_RANGES: Readonly<Record<"pods" | "services" | "external", Readonly<Record<IPFamily, string>>>> = {
  pods: { IPv4: "10.1.0.0/16", IPv6: "fd00:1::/32" },
  services: { IPv4: "10.96.0.0/16", IPv6: "fd00:96::/112" },
  external: { IPv4: "198.51.100.0/24", IPv6: "fd00:198::/64" },
};

/** Two nodes with three pods each (pods 1 to 3 of node1 hang on `veth1` to `veth3`) and two clients outside. */
export const PLACES: readonly StagePeer[] = [
  ...[1, 2].map((node): StagePeer => ({
    name: `node${node}`,
    kind: "node",
    node: `node${node}`,
    addresses: { IPv4: `172.18.0.${node}`, IPv6: `fd00:18::${node}` },
    link: node === 1 ? "" : UPLINK,
  })),
  ...[1, 2].flatMap((node) =>
    [1, 2, 3].map((pod): StagePeer => ({
      name: `pod-${node}-${pod}`,
      kind: "pod",
      node: `node${node}`,
      addresses: { IPv4: `10.1.${node}.${pod}`, IPv6: `fd00:1:${node}::${pod}` },
      link: node === 1 ? `veth${pod}` : UPLINK,
    })),
  ),
  ...[1, 2].map((client): StagePeer => ({
    name: `client${client}`,
    kind: "client",
    addresses: { IPv4: `203.0.113.${client}`, IPv6: `fd00:203::${client}` },
    link: UPLINK,
  })),
];

/** Find a place. @throws {Error} when the stage has none of that name. */
export function stagePeer(name: string): StagePeer {
  const place = PLACES.find((candidate) => candidate.name === name);
  if (place === undefined) throw new Error(`the stage has no place ${JSON.stringify(name)}`);
  return place;
}

/** Name the place that has an address; the address itself when nobody has. */
export function placeNameOf(address: string): string {
  return PLACES.find(({ addresses }) => addresses.IPv4 === address || addresses.IPv6 === address)?.name ?? address;
}

/** node1's addresses on its links, loopback included. */
export const HOST_ADDRESSES: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["127.0.0.1", stagePeer(STAGE_NODE).addresses.IPv4],
  IPv6: ["::1", stagePeer(STAGE_NODE).addresses.IPv6],
};

/** The same, as a host lists them: what a fake host begins with. */
export const STAGE_ADDRESSES: readonly HostAddress[] = FAMILIES.flatMap((family) =>
  HOST_ADDRESSES[family].map((ip, index) => ({ ip, prefixLength: family === "IPv4" ? 16 : 64, link: index === 0 ? "lo" : UPLINK })),
);

/** The API objects that are there before any scenario begins: the nodes, in zones `zone-a` and `zone-b`, and the service ranges. */
export const STAGE_OBJECTS: readonly RawObject[] = [
  ...[1, 2].map((node) =>
    rawNode(`node${node}`, {
      zone: node === 1 ? "zone-a" : "zone-b",
      addresses: [`172.18.0.${node}`, `fd00:18::${node}`],
      podCIDRs: [`10.1.${node}.0/24`, `fd00:1:${node}::/64`],
    }),
  ),
  rawServiceCIDR("kubernetes", [STAGE_RANGES.services.IPv4, STAGE_RANGES.services.IPv6]),
];

/** What node1's proxy is configured with, where a scenario doesn't say otherwise. */
export const STAGE_SETTINGS: NodeSettings = {
  masqueradeAll: false,
  masqueradeBit: 14,
  detectLocal: { mode: "ClusterCIDR", clusterCIDRs: [STAGE_RANGES.pods.IPv4, STAGE_RANGES.pods.IPv6] },
  nodePortAddresses: ["primary"],
};
