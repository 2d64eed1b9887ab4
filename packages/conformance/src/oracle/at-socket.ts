import { parseCIDR } from "@turnout/core";
import type { CIDR, IPFamily } from "@turnout/core";
import type { OracleWorld } from "./oracle-world.ts";
import { UPLINK } from "./packet.ts";
import type { Packet } from "./packet.ts";
import { contains, isIn } from "./read-node.ts";
import type { OracleNode } from "./read-node.ts";

/**
 * Say where a client is served (variant `localClients`). At a socket there is no source address yet, so source ranges have to let in whatever address
 * a pod of the node may have; the host counts by its primary one ({@link isHostLeftOut}).
 * @param sources the row's source ranges, as far as they count for the destination
 */
export function servedAt(world: OracleWorld, node: OracleNode, packet: Packet, sources: readonly CIDR[] | undefined): "socket" | "packet" {
  if (!isAtSocket(world, packet)) return "packet";
  if (sources === undefined || packet.link === "") return "socket";
  const pods = podRanges(world, node, packet.family);
  return pods.length > 0 && pods.every((range) => sources.some((source) => contains(source, range))) ? "socket" : "packet";
}

/**
 * Whether source ranges keep the host's primary address out, and it is therefore served nowhere. What it sends to another machine from an address outside
 * of the ranges, or where there is no endpoint, is dropped on its way out.
 */
export function isHostLeftOut(world: OracleWorld, node: OracleNode, packet: Packet, sources: readonly CIDR[]): boolean {
  if (packet.link !== "" || !isAtSocket(world, packet)) return false;
  return node.primary === undefined || !isIn(node.primary, sources);
}

/** Whether a packet stands for a socket of the node or its pods, at which the backend serves. */
export function isAtSocket({ variants }: OracleWorld, { link, protocol }: Packet): boolean {
  return variants.localClients === "sockets" && link !== UPLINK && protocol !== "SCTP";
}

/** Where pods of the node may be: in its own ranges, and where detect-local finds pods. None: detect-local doesn't tell pods by their addresses. */
function podRanges({ settings: { detectLocal } }: OracleWorld, { podCIDRs }: OracleNode, family: IPFamily): readonly CIDR[] {
  if (detectLocal.mode === "NodeCIDR") return podCIDRs;
  if (detectLocal.mode !== "ClusterCIDR") return [];
  const all = detectLocal.clusterCIDRs.flatMap((text) => parseCIDR(text) ?? []).filter((range) => range.family === family);
  return all.length === 0 ? [] : [...all.slice(0, 1), ...podCIDRs];
}
