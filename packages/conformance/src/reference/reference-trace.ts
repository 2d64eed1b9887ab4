import { cidrContains, parseCIDR, parseIP } from "@turnout/core";
import type { CIDR, Origin, Rule } from "@turnout/core";
import type { Packet } from "../oracle/packet.ts";
import { referenceKey } from "./reference-objects.ts";
import type { ReferenceDestination, ReferenceNode } from "./reference-objects.ts";
import type { Trace } from "../runner/fake-host.ts";

/** What a packet meets on the reference backend. */
export interface ReferenceState {
  /** Undefined: nothing is in force. */
  readonly node: ReferenceNode | undefined;
  readonly destination: (key: string) => ReferenceDestination | undefined;
  readonly isClusterIP: (address: string) => boolean;
  /** The host's own addresses. */
  readonly hostAddresses: ReadonlySet<string>;
  /** Where a row's client was sent last, if that still counts. */
  readonly affinityOf: (row: string, client: string) => string | undefined;
}

/** Follow the first packet of a connection through what is written. Pure, but for the random choice. */
export function traceReference(state: ReferenceState, packet: Packet, random: () => number): Trace {
  const { node, hostAddresses } = state;
  const { destination: address, port, protocol } = packet;
  if (node === undefined) return { is: "pass", path: ["nothing is written"] };
  const own = state.destination(referenceKey(address, port, protocol));
  if (own !== undefined) return traceRules(own, node, state, packet, random);
  const nodePort = state.destination(referenceKey("*", port, protocol));
  if (nodePort !== undefined && node.nodePortAddresses.includes(address)) return traceRules(nodePort, node, state, packet, random);
  if (hostAddresses.has(address)) return { is: "pass", path: [`${address} is the host's own`] };
  if (state.isClusterIP(address)) return { is: "reject", path: [`${address} has no port ${port}/${protocol}`] };
  if (node.serviceCIDRs.some((range) => isIn(address, range))) return { is: "drop", path: [`${address} is nobody's`] };
  return { is: "pass", path: [`${address} is not a service's`] };
}

/** Whose row's affinity a packet falls under; undefined: none. */
export function affinityRow(state: ReferenceState, packet: Packet): ReferenceDestination | undefined {
  const key = destinationKeyOf(state, packet);
  const found = key === undefined ? undefined : state.destination(key);
  return found === undefined || found.affinitySeconds === 0 ? undefined : found;
}

/** Under which key the destination is written that a packet is for; undefined: nobody's. */
export function destinationKeyOf(state: ReferenceState, { destination, port, protocol }: Packet): string | undefined {
  const [own, nodePort] = [destination, "*"].map((address) => referenceKey(address, port, protocol));
  if (own !== undefined && state.destination(own) !== undefined) return own;
  const answers = state.node?.nodePortAddresses.includes(destination) === true;
  return answers && nodePort !== undefined && state.destination(nodePort) !== undefined ? nodePort : undefined;
}

function traceRules(
  destination: ReferenceDestination,
  node: ReferenceNode,
  state: ReferenceState,
  packet: Packet,
  random: () => number,
): Trace {
  const isAsked = ((packet.mark ?? 0) & (1 << node.masqueradeBit)) !== 0;
  const rule = destination.rules.find(({ from }) => fits(from, destination, node, state, packet));
  if (rule === undefined) return { is: "pass", path: [`${destination.row}: no rule fits`] };
  const path = [`${destination.row}: from ${rule.from} to ${rule.to}`];
  if (rule.to === "reject" || rule.to === "drop") return { is: rule.to, path };
  return traceChoice(destination, isAsked ? { ...rule, masquerade: true } : rule, state, packet, random, path);
}

function traceChoice(
  destination: ReferenceDestination,
  rule: Rule,
  state: ReferenceState,
  packet: Packet,
  random: () => number,
  path: readonly string[],
): Trace {
  const pool = rule.to === "local" ? destination.local : destination.cluster;
  const previous = destination.affinitySeconds === 0 ? undefined : state.affinityOf(destination.row, packet.source);
  const endpoint = previous !== undefined && pool.includes(previous) ? previous : pool[Math.floor(random() * pool.length)];
  if (endpoint === undefined) return { is: "pass", path: [...path, "the pool is empty"] };
  const isHairpin = endpoint.startsWith(packet.family === "IPv4" ? `${packet.source}:` : `[${packet.source}]:`);
  const masquerade = rule.masquerade || isHairpin;
  return { is: "forward", endpoint, masquerade, path: [...path, `${previous === endpoint ? "kept" : "drawn"} ${endpoint}`] };
}

function fits(
  from: Origin,
  destination: ReferenceDestination,
  { detector }: ReferenceNode,
  state: ReferenceState,
  packet: Packet,
): boolean {
  if (from === "anyone") return true;
  if (from === "thisHost") return state.hostAddresses.has(packet.source);
  if (from === "outsideSourceRanges") return !destination.sources.some((range) => isIn(packet.source, range));
  if (detector === undefined) return false;
  const isPod =
    detector.by === "cidr"
      ? detector.cidrs.some((range) => isIn(packet.source, range))
      : detector.by === "interface"
        ? packet.link === detector.name
        : packet.link !== "" && packet.link.startsWith(detector.prefix);
  return isPod === (from === "localPod");
}

const ranges = new Map<string, CIDR | undefined>();

function isIn(address: string, range: string): boolean {
  if (!ranges.has(range)) ranges.set(range, parseCIDR(range));
  const cidr = ranges.get(range);
  const ip = parseIP(address);
  return cidr !== undefined && ip !== undefined && cidrContains(cidr, ip);
}
