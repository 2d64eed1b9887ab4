import { hostPort } from "../model/addresses.ts";
import type { Node } from "../model/api-objects.ts";
import { listedNames, printableName } from "../model/names.ts";
import type { ServicePort } from "../model/rows.ts";
import type { Cause, Fate } from "./answer.ts";
import { isFromHost, isWithin } from "./hit.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";

const NAMED_MAX = 3;

/**
 * Say so where an address that nobody has is like cluster IPs: in the same /24, or /112 of IPv6. Only where no service range is known. Pure.
 *
 * Edges: a guess, so addresses that anybody is known to have are not meant.
 */
export function likenessCauses(state: ExplainedState, packet: AskedPacket): readonly Cause[] {
  const { node, rows } = state;
  const { destination, family } = packet;
  if (node.serviceCIDRs.length > 0 || isKnown(state, destination)) return [];
  const near = [`${destination}/${family === "IPv4" ? 24 : 112}`];
  const clusterIPs = [...rows].flatMap(({ destinations }) =>
    destinations.flatMap(({ kind, address }) => (kind === "clusterIP" ? address : [])),
  );
  const alike = [...new Set(clusterIPs)].filter((address) => isWithin(address, near));
  if (alike.length === 0) return [];
  return [
    {
      id: "unknown_address",
      isSure: false,
      says: `no Service has ${destination}, and cluster IPs here are like it (${listedNames(alike, NAMED_MAX)}): a wrong address, or that of a Service that is gone`,
      show: [`kubectl get services -A -o wide | grep -F ${destination}`],
      fix: "ask for the Service's present address (a client may have kept an old DNS answer)",
    },
  ];
}

/** Tell whether somebody is known to have the address. Pure. */
export function isKnown(state: ExplainedState, address: string): boolean {
  const { node, rows, hostAddresses } = state;
  const { detector } = node;
  const pods = [...node.podCIDRs, ...(detector?.by === "cidr" ? detector.cidrs : [])];
  return (
    hostAddresses.includes(address) ||
    node.addresses.includes(address) ||
    isWithin(address, pods) ||
    otherNode(state, address) !== undefined ||
    [...rows].some(({ endpoints }) => endpoints.some(({ ip }) => ip === address))
  );
}

function otherNode({ objects, node }: ExplainedState, address: string): Node | undefined {
  for (const other of objects?.nodes?.() ?? []) if (other.name !== node.name && other.addresses.includes(address)) return other;
  return undefined;
}

/** Name who has an address and port that are no Service's; undefined: nobody is known to. Pure. */
export function unownedText(state: ExplainedState, { destination, port, protocol }: AskedPacket): string | undefined {
  const target = `${hostPort(destination, port)}/${protocol}`;
  const find = (fits: (row: ServicePort) => boolean): ServicePort | undefined => [...state.rows].find(fits);
  const probed =
    protocol === "TCP" && state.hostAddresses.includes(destination) ? find((row) => row.healthCheck?.port === port) : undefined;
  if (probed !== undefined)
    return `${target} is the health check node port of Service ${probed.name.namespace}/${probed.name.name}, where the proxy itself answers`;
  const served = find(
    ({ name, endpoints }) =>
      name.protocol === protocol && endpoints.some((endpoint) => endpoint.ip === destination && endpoint.port === port),
  );
  if (served !== undefined) return `${target} is an endpoint of Service ${printableName(served.name)}, and no Service's own address`;
  const other = otherNode(state, destination);
  return other === undefined ? undefined : `${target} is for node ${other.name}, and no Service's that counts here`;
}

/** Name what is worth knowing of an address that is no Service's. Pure. */
export function unownedNotes(state: ExplainedState, { destination, port, protocol }: AskedPacket): readonly string[] {
  const other = otherNode(state, destination);
  const row = [...state.rows].find(
    ({ name, destinations }) => name.protocol === protocol && destinations.some((one) => one.kind === "nodePort" && one.port === port),
  );
  if (other === undefined || row === undefined) return [];
  return [`${port} is the node port of Service ${printableName(row.name)}, and ${destination} is ${other.name}'s: ask there, too`];
}

/** No packet comes from a cluster IP. Pure. */
export function senderNotes(state: ExplainedState, packet: AskedPacket): readonly string[] {
  const { source, device } = packet;
  // To an address of Services that is on a device here the host sends from that address.
  if (device === "" || isFromHost(state, packet)) return [];
  const row = [...state.rows].find(({ destinations }) =>
    destinations.some(({ kind, address }) => kind === "clusterIP" && address === source),
  );
  if (row === undefined) return [];
  return [
    `${source} is the cluster IP of Service ${row.name.namespace}/${row.name.name}: no packet comes from it; ask with a pod's address`,
  ];
}

/**
 * Endpoints whose address this host has on a device, though they are pods here, or are elsewhere. Pure.
 *
 * Edges: pods in the host's network have the node's own addresses; what is outside the pods' ranges and not said to be elsewhere may be meant so.
 */
export function takenCauses({ hostAddresses, node }: ExplainedState, fate: Fate): readonly Cause[] {
  if (fate.is !== "forward") return [];
  const taken = fate.endpoints.find(
    ({ ip, nodeName, isLocal }) =>
      hostAddresses.includes(ip) && !node.addresses.includes(ip) && (isWithin(ip, node.podCIDRs) || (nodeName !== undefined && !isLocal)),
  );
  if (taken === undefined) return [];
  const { ip } = taken;
  return [
    {
      id: "address_taken",
      says: `${ip} is an address of this node itself: packets for the endpoint end here, and never reach its pod`,
      show: [`ip addr show to ${ip}`],
      fix: "see who put it on that device, and take it off there; only where a process of this node is meant to answer, this is as it should be",
    },
  ];
}

/** The Service whose cluster IP an address is. */
function ownerOf({ rows }: ExplainedState, ip: string): ServicePort | undefined {
  for (const row of rows) if (row.destinations.some(({ kind, address }) => kind === "clusterIP" && address === ip)) return row;
  return undefined;
}

/** Tell whether an address is a Service's cluster IP, or in the service range, and no device here has it. Pure. */
export function isServiceAddress(state: ExplainedState, ip: string): boolean {
  if (state.hostAddresses.includes(ip)) return false;
  return isWithin(ip, state.node.serviceCIDRs) || ownerOf(state, ip) !== undefined;
}

/** Endpoints that are Services themselves: the kernel translates a packet once, so nobody translates it again. Pure. */
export function serviceCauses(state: ExplainedState, fate: Fate): readonly Cause[] {
  const found = fate.is === "forward" ? fate.endpoints.find((endpoint) => endpoint.isServiceAddress === true) : undefined;
  if (found === undefined) return [];
  const owner = ownerOf(state, found.ip);
  const is =
    owner === undefined ? "in the service range, where no pod is" : `the cluster IP of Service ${owner.name.namespace}/${owner.name.name}`;
  return [
    {
      id: "service_endpoint",
      says: `the endpoint ${hostPort(found.ip, found.port)} is ${is}: a packet is translated once, so what is sent there is not translated again, and is lost`,
      show: [`kubectl get endpointslices -A -o wide | grep -F ${found.ip}`],
      fix: "put the pods' addresses into that EndpointSlice, or have clients ask the other Service itself",
    },
  ];
}
