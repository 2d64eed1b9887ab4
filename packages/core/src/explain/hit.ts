import { nodePortAddresses } from "../model/node-port-addresses.ts";
import { cidrContains, parseCIDR, parseIP } from "../model/addresses.ts";
import type { Destination, LocalDetector, Rule, ServicePort } from "../model/rows.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";

/** A destination that a packet is for, with its row. */
export interface Hit {
  readonly row: ServicePort;
  readonly destination: Destination;
}

/** Find the destination that holds for a packet: its address first, then the node port. Pure. */
export function hitOf(state: ExplainedState, packet: Pick<AskedPacket, "destination" | "port" | "protocol">): Hit | undefined {
  const find = (address: string): Hit | undefined => {
    for (const row of state.rows) {
      if (row.name.protocol !== packet.protocol) continue;
      const destination = row.destinations.find((candidate) => candidate.address === address && candidate.port === packet.port);
      if (destination !== undefined) return { row, destination };
    }
    return undefined;
  };
  return find(packet.destination) ?? (answersNodePorts(state, packet.destination) ? find("") : undefined);
}

/** Tell whether node ports answer on an address of this host. Pure. */
export function answersNodePorts(state: ExplainedState, address: string): boolean {
  const { hostAddresses, variants, node } = state;
  const isOff = isLoopback(address) && variants.nodePortsOnLoopback !== node.family;
  const isHosts = hostAddresses.includes(address) || (address.startsWith("127.") && hostAddresses.includes("127.0.0.1"));
  const chosen = nodePortAddressesOf(state);
  return isHosts && !isOff && (chosen === "all" || variants.nodePortScope === "all" || chosen.includes(address));
}

/** The addresses that the settings choose for node ports. Pure. */
export function nodePortAddressesOf({ node, hostAddresses, nodePortAddressesDefault }: ExplainedState): "all" | readonly string[] {
  const wanted = node.settings.nodePortAddresses ?? nodePortAddressesDefault;
  return nodePortAddresses({ wanted, family: node.family, primary: node.addresses[0], hostAddresses });
}

/** The rule that decides about a packet. Pure. */
export function decidingRule(state: ExplainedState, packet: AskedPacket, { destination }: Hit): Rule {
  const rule = destination.rules.find(({ from }) => {
    switch (from) {
      case "anyone":
        return true;
      case "localPod":
        return isFromPod(state, packet);
      case "offCluster":
        return !isFromPod(state, packet);
      case "thisHost":
        return isFromHost(state, packet);
      case "outsideSourceRanges":
        return !isWithin(packet.source, destination.sourceRanges ?? []);
    }
  });
  // The last rule is from anyone.
  return rule ?? (destination.rules.at(-1) as Rule);
}

/** Tell whether detect-local takes the sender for a pod; false where it can't tell. Pure. */
export function isFromPod({ node, capabilities, variants }: ExplainedState, { source, device }: AskedPacket): boolean {
  const { detector } = node;
  if (detector === undefined) return false;
  if (variants.localClients === "sockets" && isWithin(source, node.podCIDRs)) return true;
  if (detector.by === "cidr") return isWithin(source, detector.cidrs);
  if (capabilities.clientAddress !== true) return isWithin(source, node.podCIDRs.slice(0, 1));
  return detector.by === "interface" ? device === detector.name : device.startsWith(detector.prefix);
}

/** Tell whether this host itself sends the packet. Pure. */
export function isFromHost({ hostAddresses }: ExplainedState, { source }: Pick<AskedPacket, "source">): boolean {
  return hostAddresses.includes(source) || isLoopback(source);
}

/**
 * Tell whether a client's socket is served, so that no packet for the Service's address leaves it. Pure.
 *
 * Edges: source ranges have to let in whatever address a pod of this node may have; else its packets are served. What is opted out, or outside the
 * cgroup that is served, can't be told.
 * @source docs/backends/ebpf.md
 */
export function isAtSocket(state: ExplainedState, packet: AskedPacket, { destination }: Hit): boolean {
  const { variants, node } = state;
  if (variants.localClients !== "sockets" || packet.protocol === "SCTP") return false;
  if (packet.device === "") return true;
  const isOfRange = isWithin(packet.source, node.podCIDRs) && !state.hostAddresses.includes(packet.source);
  if (!isOfRange && !isEndpointHere(state, packet.source)) return false;
  const { sourceRanges } = destination;
  if (sourceRanges === undefined) return true;
  const { detector } = node;
  const pods = [...node.podCIDRs, ...(detector?.by === "cidr" ? detector.cidrs : [])];
  const isCovered = (range: string): boolean => {
    const own = parseCIDR(range);
    return sourceRanges.some((source) => {
      const cidr = parseCIDR(source);
      return own !== undefined && cidr !== undefined && cidr.prefixLength <= own.prefixLength && cidrContains(cidr, own);
    });
  };
  return detector?.by === "cidr" && pods.every(isCovered);
}

/** Tell whether an address is an endpoint's here, and none of this host's own. Pure. */
export function isEndpointHere({ rows, hostAddresses }: ExplainedState, address: string): boolean {
  if (hostAddresses.includes(address)) return false;
  for (const { endpoints } of rows) if (endpoints.some(({ ip, isLocal }) => isLocal && ip === address)) return true;
  return false;
}

/** How pods are told, for people. Pure. */
export function detectorText(detector: LocalDetector | undefined): string {
  if (detector === undefined) return "pods can't be told here";
  if (detector.by === "cidr") return `pods are in ${detector.cidrs.join(", ")}`;
  return detector.by === "interface" ? `pods come in by ${detector.name}` : `pods come in by ${detector.prefix}*`;
}

/** Tell whether an address is in one of the ranges. Pure. */
export function isWithin(address: string, cidrs: readonly string[]): boolean {
  const ip = parseIP(address);
  return cidrs.some((text) => {
    const cidr = parseCIDR(text);
    return ip !== undefined && cidr !== undefined && cidrContains(cidr, ip);
  });
}

/** Tell whether an address is a loopback address. Pure. */
export function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}
