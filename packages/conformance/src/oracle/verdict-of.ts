import { isAtSocket, isHostLeftOut, servedAt } from "./at-socket.ts";
import type { OracleEndpoint } from "./read-endpoints.ts";
import { isIn, isOfHost } from "./read-node.ts";
import type { OracleRow } from "./read-services.ts";
import { sceneOf } from "./scene.ts";
import type { Scene } from "./scene.ts";
import type { OracleWorld } from "./oracle-world.ts";
import type { Packet, Verdict } from "./packet.ts";
import type { Pool } from "./pools.ts";

/**
 * Say what must become of a packet, by the rulebook alone.
 *
 * Shape: the oracle of the conformance kit; shares no code with what makes rows and rules, but the reading of addresses.
 * Edges: backends may differ where `world.variants` says so. The host's own address in any range is the host's: it is neither undefined nor
 * unallocated (rules ). A backend that can't drop rejects (UDP aside), one that can't keep the client's address or masquerade hairpins
 * always or never rewrites there, one that doesn't get at the host's own packets lets them pass, one that can't answer with a refusal drops, or lets
 * pass what it can't drop either, and one that can't tell who sends treats all as clients outside (rule R-56). `rejectFromHost: false` concerns external and load-balancer IPs that are not the host's
 * own, as refusals for those sit where only arriving and passing packets come by (rules ).
 * @source docs/rules.md
 */
export function verdictOf(world: OracleWorld, packet: Packet): Verdict {
  const { capabilities } = world;
  if (packet.link === "" && capabilities.hostOrigin !== true) return { is: "pass", because: ["R-56"] };
  const verdict = fullVerdict(world, packet);
  // Whoever can't drop a connection can still not answer a datagram.
  const isRejected = verdict.is === "drop" && capabilities.drop !== true && packet.protocol !== "UDP" && capabilities.refuse === true;
  if (isRejected) return { is: "reject", because: [...verdict.because, "R-56"] };
  if (capabilities.refuse === true || (verdict.is !== "reject" && verdict.is !== "drop")) return verdict;
  return { is: capabilities.drop === true ? "drop" : "pass", because: [...verdict.because, "R-56"] };
}

function fullVerdict(world: OracleWorld, packet: Packet): Verdict {
  const scene = sceneOf(world, packet.family);
  const owner = scene.ownerOf(packet);
  if (owner === undefined) return verdictOnNobodys(world, scene, packet);
  const { row, kind } = owner;
  if (kind === "clusterIP") return verdictOnClusterIP(world, scene, packet, row);
  const verdict = verdictOnExternal(world, scene, packet, row, kind === "loadBalancerIP");
  const isAway = packet.link === "" && kind !== "nodePort" && !scene.node.hostAddresses.has(packet.destination);
  // What the Local policy drops is dropped where the refusals are; who is outside of the ranges is dropped on every way.
  const isRefused = verdict.is === "reject" || (verdict.is === "drop" && verdict.because.includes("R-33"));
  return isRefused && isAway && !world.variants.rejectFromHost ? { ...verdict, is: "pass" } : verdict;
}

/** Rules. */
function verdictOnClusterIP(world: OracleWorld, scene: Scene, packet: Packet, row: OracleRow): Verdict {
  const pools = scene.poolsOf(row);
  if (!pools.hasUsable) return { is: "reject", because: ["R-23"] };
  const pool = row.internalLocal ? pools.local : pools.cluster;
  if (!pool.hasUsable) return { is: "drop", because: ["R-27"] };
  const isFromPod = world.capabilities.origins === true ? scene.node.isFromPod : undefined;
  if (isAtSocket(world, packet)) return forwardAtSocket(pool, ["R-22", "R-24"]);
  if (world.settings.masqueradeAll) return forward(world, packet, pool, true, ["R-25", "R-22"]);
  if (isFromPod === undefined) return forward(world, packet, pool, false, ["R-26", "R-22"]);
  return forward(world, packet, pool, !isFromPod(packet), ["R-22", "R-24"]);
}

/** Rules. */
function verdictOnExternal(world: OracleWorld, scene: Scene, packet: Packet, row: OracleRow, isBalanced: boolean): Verdict {
  const { cluster, local, hasUsable: hasUsableEndpoints } = scene.poolsOf(row);
  const sources = isBalanced ? scene.sourcesOf(row) : undefined;
  if (sources !== undefined && isHostLeftOut(world, scene.node, packet, sources)) {
    const isLet = scene.node.hostAddresses.has(packet.destination) || (hasUsableEndpoints && isIn(packet.source, sources));
    return { is: isLet ? "pass" : "drop", because: ["R-39"] };
  }
  const served = servedAt(world, scene.node, packet, sources);
  const isBlocked = sources !== undefined && !isIn(packet.source, sources) && (served === "packet" || packet.link !== "");
  if (isBlocked && (hasUsableEndpoints || world.variants.blockedWithoutEndpoints === "drop")) return { is: "drop", because: ["R-39"] };
  const admitted = sources === undefined || isBlocked ? [] : isIn(packet.source, row.sourceRanges ?? []) ? ["R-39"] : ["R-40"];
  if (!hasUsableEndpoints) return { is: "reject", because: ["R-29", ...admitted] };
  const hasOrigins = world.capabilities.origins === true;
  const isFromPod = hasOrigins ? scene.node.isFromPod : undefined;
  if (served === "socket") {
    if (!row.externalLocal) return forwardAtSocket(cluster, ["R-28", ...admitted]);
    if (packet.link === "" && hasOrigins) return forwardAtSocket(cluster, ["R-32", ...admitted]);
    if (isFromPod !== undefined) return forwardAtSocket(cluster, ["R-31", ...admitted]);
    if (local.hasUsable) return forwardAtSocket(local, ["R-30", "R-34", ...admitted]);
    return { is: "drop", because: ["R-33", "R-34", ...admitted] };
  }
  if (!row.externalLocal) return forward(world, packet, cluster, true, ["R-28", ...admitted]);
  if (isFromPod?.(packet) === true)
    return forward(world, packet, cluster, false, ["R-31", ...(isOfHost(scene.node, packet.source) ? ["R-35"] : []), ...admitted]);
  if (hasOrigins && isOfHost(scene.node, packet.source)) return forward(world, packet, cluster, true, ["R-32", ...admitted]);
  const untold = isFromPod === undefined ? ["R-34"] : [];
  if (!local.hasUsable) return { is: "drop", because: ["R-33", ...untold, ...admitted] };
  return forward(world, packet, local, false, ["R-30", ...untold, ...admitted]);
}

/** Nobody answers here: what is done to keep such packets from leaving, if anything. */
function verdictOnNobodys(world: OracleWorld, scene: Scene, packet: Packet): Verdict {
  const { variants } = world;
  const { node } = scene;
  if (node.hostAddresses.has(packet.destination)) {
    const row = scene.nodePortOwner(packet);
    if (row === undefined) return { is: "pass", because: [] };
    if (node.loopbackNodePort === packet.destination) {
      // TCP is the process's, which is a program of the host; what is served at sockets sees none of SCTP.
      const isLeft = packet.protocol === "TCP" || (packet.protocol === "SCTP" && variants.localClients === "sockets");
      return { is: isLeft ? "pass" : "reject", because: ["R-38"] };
    }
    const { cluster, local } = scene.poolsOf(row);
    if (variants.nodePortRejectScope === "nodePortAddresses") return { is: "pass", because: ["R-37"] };
    if (!cluster.hasUsable) return { is: "reject", because: ["R-29", "R-37"] };
    if (row.externalLocal && !local.hasUsable) return { is: "drop", because: ["R-33", "R-37"] };
    return { is: "pass", because: ["R-37"] };
  }
  if (scene.clusterIPs.has(packet.destination)) return { is: variants.undefinedClusterIPPort, because: ["R-47"] };
  if (scene.externalIPs.has(packet.destination)) return { is: variants.undefinedExternalPort, because: ["R-47"] };
  if (isIn(packet.destination, node.serviceRanges)) return { is: variants.unallocatedClusterIP, because: ["R-48", "R-62"] };
  const rule = scene.unchangedBy(packet.destination);
  return { is: "pass", because: rule === undefined ? [] : [rule] };
}

/** Whoever is served at a socket is seen with the address that it has there: of the host, one of the node's own. */
function forwardAtSocket(pool: Pool, because: readonly string[]): Verdict {
  if (pool.endpoints.length === 0) return { is: "reject", because: [...because, ...pool.because] };
  const answers = pool.endpoints.map((endpoint) => ({ endpoint: endpoint.text, masquerade: false }));
  return { is: "forward", answers, because: [...because, ...pool.because] };
}

function forward(world: OracleWorld, packet: Packet, pool: Pool, asked: boolean, because: readonly string[]): Verdict {
  const { clientAddress, hairpin: canHairpin } = world.capabilities;
  if (pool.endpoints.length === 0) return { is: "reject", because: [...because, ...pool.because] };
  const masquerade = asked || clientAddress !== true;
  const isSender = (endpoint: OracleEndpoint): boolean => canHairpin === true && endpoint.ip === packet.source;
  const hairpin = !masquerade && pool.endpoints.some(isSender) ? ["R-36"] : [];
  return {
    is: "forward",
    answers: pool.endpoints.map((endpoint) => ({ endpoint: endpoint.text, masquerade: masquerade || isSender(endpoint) })),
    because: [...hairpin, ...because, ...pool.because],
  };
}
