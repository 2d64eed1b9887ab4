import type { OracleWorld } from "./oracle-world.ts";
import type { Packet } from "./packet.ts";
import { sceneOf } from "./scene.ts";
import { verdictOf } from "./verdict-of.ts";

/** The entry by which an affine client is remembered, and for how long after its latest connection. */
export interface AffinityEntry {
  readonly key: string;
  readonly seconds: number;
}

/**
 * Say which affinity entry a packet uses and renews (rules ); undefined when it is not affine, or not forwarded.
 *
 * Edges: a backend without affinity has none (rule R-56). An entry that names an endpoint the packet can't be forwarded to says nothing.
 */
export function affinityOf(world: OracleWorld, packet: Packet): AffinityEntry | undefined {
  if (world.capabilities.sessionAffinity !== true || verdictOf(world, packet).is !== "forward") return undefined;
  const row = sceneOf(world, packet.family).ownerOf(packet)?.row;
  if (row?.affinitySeconds === undefined) return undefined;
  const scope = world.variants.affinityScope === "row" ? [] : [packet.destination, packet.port];
  return { key: [packet.family, row.key, ...scope, packet.source].join(" "), seconds: row.affinitySeconds };
}

/** Tell whether some packet to the row that answers this one may be sent to an endpoint (`ip:port`), by whatever way it comes. */
export function mayServe(world: OracleWorld, packet: Packet, endpoint: string): boolean {
  const scene = sceneOf(world, packet.family);
  const row = scene.ownerOf(packet)?.row;
  if (row === undefined) return false;
  const { cluster, local } = scene.poolsOf(row);
  return [...cluster.endpoints, ...local.endpoints].some(({ text }) => text === endpoint);
}
