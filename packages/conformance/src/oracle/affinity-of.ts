import { servedAt } from "./at-socket.ts";
import type { OracleWorld } from "./oracle-world.ts";
import type { Packet } from "./packet.ts";
import { sceneOf } from "./scene.ts";
import { verdictOf } from "./verdict-of.ts";

/** The entry by which an affine client is remembered, and for how long after its latest connection. */
export interface AffinityEntry {
  readonly key: string;
  /** Entries that have one of these in common may be one: of the same row and client, or of the same address and client. */
  readonly related: readonly string[];
  readonly seconds: number;
}

/**
 * Say which affinity entry a packet uses and renews (rules ); undefined when it is not affine, or not forwarded, or
 * nothing is remembered (variant `affinityBy`).
 *
 * Edges: a backend without affinity has none (rule R-56). An entry that names an endpoint the packet can't be forwarded to says nothing.
 */
export function affinityOf(world: OracleWorld, packet: Packet): AffinityEntry | undefined {
  if (world.variants.affinityBy === "address") return undefined;
  return entryOf(world, packet);
}

/** Tell whether a client's address alone decides which endpoint it gets (variant `affinityBy`): always the same one while the endpoints are. */
export function isFixed(world: OracleWorld, packet: Packet): boolean {
  return world.variants.affinityBy === "address" && entryOf(world, packet) !== undefined;
}

function entryOf(world: OracleWorld, packet: Packet): AffinityEntry | undefined {
  if (world.capabilities.sessionAffinity !== true || verdictOf(world, packet).is !== "forward") return undefined;
  const scene = sceneOf(world, packet.family);
  const owner = scene.ownerOf(packet);
  const row = owner?.row;
  if (row?.affinitySeconds === undefined) return undefined;
  const { family, protocol, destination, port } = packet;
  const sources = owner?.kind === "loadBalancerIP" ? scene.sourcesOf(row) : undefined;
  // At a socket, a client is a network namespace.
  const client = servedAt(world, scene.node, packet, sources) === "socket" ? `link ${packet.link}` : packet.source;
  const [ofRow, ofAddress] = [`${family} ${row.key} ${client}`, `${family} ${protocol} ${destination} ${port} ${client}`];
  const seconds = row.affinitySeconds;
  if (world.variants.affinityScope === "row") return { key: ofRow, related: [], seconds };
  return { key: `${ofRow} ${destination} ${port}`, related: [ofRow, ofAddress], seconds };
}

/** Tell whether some packet to the row that answers this one may be sent to an endpoint (`ip:port`), by whatever way it comes. */
export function mayServe(world: OracleWorld, packet: Packet, endpoint: string): boolean {
  const scene = sceneOf(world, packet.family);
  const row = scene.ownerOf(packet)?.row;
  if (row === undefined) return false;
  const { cluster, local } = scene.poolsOf(row);
  return [...cluster.endpoints, ...local.endpoints].some(({ text }) => text === endpoint);
}
