import { cidrContains, parseCIDR, parseIP } from "@turnout/core";
import type { CIDR, Origin, Rule } from "@turnout/core";
import type { Packet } from "../oracle/packet.ts";
import { paperKey } from "./paper-objects.ts";
import type { PaperDestination, PaperNode } from "./paper-objects.ts";
import type { Trace } from "../play/fake-host.ts";

/** What a packet meets on paper. */
export interface PaperState {
  /** Undefined: nothing is in force. */
  readonly node: PaperNode | undefined;
  readonly destination: (key: string) => PaperDestination | undefined;
  readonly isClusterIP: (address: string) => boolean;
  /** The host's own addresses. */
  readonly hostAddresses: ReadonlySet<string>;
  /** Where a row's client was sent last, if that still counts. */
  readonly heldBy: (row: string, client: string) => string | undefined;
}

/** Follow the first packet of a connection through what is written. Pure, but for the random choice. */
export function tracePaper(state: PaperState, packet: Packet, random: () => number): Trace {
  const { node, hostAddresses } = state;
  const { destination: address, port, protocol } = packet;
  if (node === undefined) return { is: "pass", path: ["nothing is written"] };
  const own = state.destination(paperKey(address, port, protocol));
  if (own !== undefined) return traceRules(own, node, state, packet, random);
  const nodePort = state.destination(paperKey("*", port, protocol));
  if (nodePort !== undefined && node.nodePortAddresses.includes(address)) return traceRules(nodePort, node, state, packet, random);
  if (hostAddresses.has(address)) return { is: "pass", path: [`${address} is the host's own`] };
  if (state.isClusterIP(address)) return { is: "reject", path: [`${address} has no port ${port}/${protocol}`] };
  if (node.serviceCIDRs.some((range) => isIn(address, range))) return { is: "drop", path: [`${address} is nobody's`] };
  return { is: "pass", path: [`${address} is not a service's`] };
}

/** Whose row's affinity a packet falls under; undefined: none. */
export function affinityRow(state: PaperState, { destination, port, protocol }: Packet): PaperDestination | undefined {
  const own = state.destination(paperKey(destination, port, protocol));
  const found =
    own ?? (state.node?.nodePortAddresses.includes(destination) === true ? state.destination(paperKey("*", port, protocol)) : undefined);
  return found === undefined || found.affinitySeconds === 0 ? undefined : found;
}

function traceRules(destination: PaperDestination, node: PaperNode, state: PaperState, packet: Packet, random: () => number): Trace {
  const isAsked = ((packet.mark ?? 0) & (1 << node.masqueradeBit)) !== 0;
  const rule = destination.rules.find(({ from }) => fits(from, destination, node, state, packet));
  if (rule === undefined) return { is: "pass", path: [`${destination.row}: no rule fits`] };
  const path = [`${destination.row}: from ${rule.from} to ${rule.to}`];
  if (rule.to === "reject" || rule.to === "drop") return { is: rule.to, path };
  return traceChoice(destination, isAsked ? { ...rule, masquerade: true } : rule, state, packet, random, path);
}

function traceChoice(
  destination: PaperDestination,
  rule: Rule,
  state: PaperState,
  packet: Packet,
  random: () => number,
  path: readonly string[],
): Trace {
  const pool = rule.to === "local" ? destination.local : destination.cluster;
  const held = destination.affinitySeconds === 0 ? undefined : state.heldBy(destination.row, packet.source);
  const endpoint = held !== undefined && pool.includes(held) ? held : pool[Math.floor(random() * pool.length)];
  if (endpoint === undefined) return { is: "pass", path: [...path, "the pool is empty"] };
  const isHairpin = endpoint.startsWith(packet.family === "IPv4" ? `${packet.source}:` : `[${packet.source}]:`);
  const masquerade = rule.masquerade || isHairpin;
  return { is: "forward", endpoint, masquerade, path: [...path, `${held === endpoint ? "kept" : "drawn"} ${endpoint}`] };
}

function fits(from: Origin, destination: PaperDestination, { detector }: PaperNode, state: PaperState, packet: Packet): boolean {
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
