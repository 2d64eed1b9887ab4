import { calledAt, DSTNAT, SRCNAT } from "@turnout/host/nft";
import type { HookedPacket } from "@turnout/host/rules";
import type { HookedWay } from "./hooked-way.ts";
import type { Hook, Passage } from "./passage.ts";

/** Clients send from a port that their system chooses, Linux from 32768 to 60999. Rules about other ports are not about these. */
const CLIENT_PORT = 47_001;
/** Where IPVS takes packets for its virtual servers, behind those that filter. @source linux net/netfilter/ipvs/ip_vs_core.c ip_vs_ops4 */
const IPVS_INPUT_AT = 99;

/** By which this host sends to itself. */
const LOOPBACK = "lo";

/** The hooks that a packet and its answer come by, in order. Pure. */
export function passagesOf(way: HookedWay): readonly Passage[] {
  const { packet, backDevice } = way;
  const isAnsweredThere = backDevice === "" || packet.device === "" ? undefined : backDevice === packet.device;
  const first: HookedPacket = { ...firstPacket(way), isAnsweredThere };
  const all = [...requestOf(way, first), ...(way.isLost === true ? [] : bridgedAnswersOf(way, first))];
  if (!way.isTranslated || way.isTranslatedBefore !== true) return all;
  return all.map(({ fits, ...passage }) => ({ ...passage, fits: (hook) => isNoNat(hook) && (fits?.(hook) ?? true) }));
}

function requestOf(way: HookedWay, first: HookedPacket): readonly Passage[] {
  const passages = way.isServedAtInput === true ? toBalancer(way, first) : toEndpoint(way, first);
  const leaving = { ...sentPacket(way, first), ...(way.endpoint.masquerade ? { source: undefined } : {}) };
  return withBridges(passages, { coming: first, leaving }, { from: way.packet.device, to: way.outDevice }, { isAnswer: false }, way);
}

function bridgedAnswersOf(way: HookedWay, first: HookedPacket): readonly Passage[] {
  const coming = answerPacket(way, first);
  const leaving = { ...coming, ...restoredSource(way) };
  return withBridges(answersOf(way, first), { coming, leaving }, { from: way.outDevice, to: way.backDevice }, { isAnswer: true }, way);
}

function firstPacket({ packet, isLocal, isInSet, isQueueServed }: HookedWay): HookedPacket {
  const { family, protocol, source, destination, port, device } = packet;
  return {
    family,
    protocol: protocol.toLowerCase(),
    source,
    destination,
    sourcePort: CLIENT_PORT,
    destinationPort: port,
    inDevice: device,
    outDevice: "",
    state: "new",
    isTranslated: false,
    isAnsweredThere: undefined,
    mark: 0,
    original: { source, destination, destinationPort: port },
    isLocal,
    isInSet,
    ...(isQueueServed === undefined ? {} : { isQueueServed }),
  };
}

/** conntrack does not call it translated where IPVS does it. */
function sentPacket({ endpoint, isTranslated, isServedAtInput = false }: HookedWay, first: HookedPacket): HookedPacket {
  return { ...first, destination: endpoint.ip, destinationPort: endpoint.port, isTranslated: isTranslated && !isServedAtInput };
}

/**
 * Say where our own chain comes among the nat chains of its hook: with nft before iptables' nat, else in it. Pure.
 * @param at the priority at which the kernel calls all of them
 */
export function ownNatPriority({ hasKubeChains = false }: HookedWay, at: number): number {
  return hasKubeChains ? at : at - 1;
}

/** Which chains a packet meets before it is translated: of the nat chains those that may come before ours, which ends nat. */
function isBefore(way: HookedWay): (hook: Hook) => boolean {
  const isEnded = way.isTranslated && way.isServedAtInput !== true;
  const last = isEnded ? ownNatPriority(way, DSTNAT) : Infinity;
  return ({ type, priority }) => (type === "nat" ? priority <= last : priority <= DSTNAT);
}

const isBehind = ({ type, priority }: Hook): boolean => type !== "nat" && priority > DSTNAT;

const isNoNat = ({ type }: Hook): boolean => type !== "nat";

/** Which chains a packet meets where it leaves: of the nat chains those that may come before ours, where ours rewrites the source; an answer meets none. */
function leavesBy(way: HookedWay, isAnswer: boolean): (hook: Hook) => boolean {
  if (isAnswer) return isNoNat;
  const last = way.isTranslated && way.endpoint.masquerade ? ownNatPriority(way, SRCNAT) : Infinity;
  return ({ type, priority }) => type !== "nat" || priority <= last;
}

/** Translated where it comes in, and forwarded. */
function toEndpoint(way: HookedWay, first: HookedPacket): readonly Passage[] {
  const { packet, outDevice, sentBy = outDevice, isLost = false } = way;
  const isFromHost = packet.device === "";
  const sent = sentPacket(way, first);
  const entry = { at: isFromHost ? "output" : "prerouting", isAnswer: false } as const;
  // The chains at output see the device of the route to the Service's address, also those that come after the translation.
  const leaving = isFromHost ? sentBy || LOOPBACK : "";
  const past = { isAnswer: false, isPastOurs: true } as const;
  const entered: readonly Passage[] = [
    ...(isFromHost ? [] : [{ at: "ingress", packet: first, isAnswer: false, isPastOurs: false }]),
    { ...entry, packet: { ...first, outDevice: leaving }, isPastOurs: false, fits: isBefore(way) },
    { ...entry, packet: { ...sent, outDevice: leaving }, isPastOurs: true, fits: isBehind },
  ];
  if (isLost) return entered;
  if (outDevice === "") return [...entered, ...(isFromHost ? loopedPassages(sent, way, past) : [{ ...past, at: "input", packet: sent }])];
  return [
    ...entered,
    ...(isFromHost ? [] : [{ ...past, at: "forward", packet: { ...sent, outDevice } }]),
    ...leavingPassages({ ...sent, inDevice: "", outDevice }, way, past),
  ];
}

/** It leaves, and its source is rewritten between the two. */
function leavingPassages(packet: HookedPacket, way: HookedWay, sent: Omit<Passage, "at" | "packet">): readonly Passage[] {
  const rewritten = sent.isAnswer ? restoredSource(way) : way.endpoint.masquerade ? { source: undefined } : {};
  return [
    { ...sent, at: "postrouting", packet, fits: leavesBy(way, sent.isAnswer) },
    { ...sent, at: "egress", packet: { ...packet, ...rewritten } },
  ];
}

/** From this host to itself, behind output. @source linux net/netfilter/nf_nat_core.c nf_nat_inet_fn: a connection is translated once for each hook's kind */
function loopedPassages(packet: HookedPacket, way: HookedWay, sent: Pick<Passage, "isAnswer" | "isPastOurs">): readonly Passage[] {
  const coming: HookedPacket = { ...packet, inDevice: LOOPBACK, outDevice: "", isAnsweredThere: true };
  const looped = { ...sent, packet: coming, isLooped: true, fits: isNoNat } as const;
  const leaving: HookedPacket = { ...packet, inDevice: "", outDevice: LOOPBACK };
  return [
    { ...sent, at: "postrouting", packet: leaving, fits: leavesBy(way, sent.isAnswer) },
    { ...sent, at: "egress", packet: leaving, isLooped: true },
    { ...looped, at: "ingress" },
    { ...looped, at: "prerouting" },
    { ...looped, at: "input" },
  ];
}

/** It comes in for an address of this host, IPVS chooses an endpoint, and this host sends it there: by output, and never by forward. */
function toBalancer(way: HookedWay, first: HookedPacket): readonly Passage[] {
  const { packet, outDevice } = way;
  const past = { isAnswer: false, isPastOurs: true } as const;
  const fresh = { isAnswer: false, isPastOurs: false } as const;
  const sent = { ...sentPacket(way, first), inDevice: "", outDevice };
  const coming: readonly Passage[] =
    packet.device === ""
      ? [{ ...fresh, at: "output", packet: { ...first, outDevice: LOOPBACK }, fits: isBefore(way) }]
      : [
          { ...fresh, at: "ingress", packet: first },
          { ...fresh, at: "prerouting", packet: first, fits: isBefore(way) },
          { ...past, at: "prerouting", packet: first, fits: isBehind },
          { ...past, at: "input", packet: first, fits: (hook) => calledAt("input", hook) < IPVS_INPUT_AT },
        ];
  const going: readonly Passage[] = [
    // A connection is translated once, where it begins.
    { ...past, at: "output", packet: sent, fits: isNoNat },
    ...leavingPassages(sent, way, past),
  ];
  return outDevice === "" ? coming : [...coming, ...going];
}

function answerPacket(way: HookedWay, first: HookedPacket): HookedPacket {
  const { packet, endpoint, outDevice } = way;
  return {
    ...sentPacket(way, first),
    source: endpoint.ip,
    destination: packet.source,
    sourcePort: endpoint.port,
    destinationPort: CLIENT_PORT,
    inDevice: outDevice,
    outDevice: "",
    state: "established",
    isAnsweredThere: true,
  };
}

/** The Service's address is put back into answers where sources are rewritten. */
function restoredSource({ isTranslated, packet }: HookedWay): Partial<HookedPacket> {
  return isTranslated ? { source: packet.destination, sourcePort: packet.port } : {};
}

function answersOf(way: HookedWay, first: HookedPacket): readonly Passage[] {
  const { packet, outDevice, backDevice } = way;
  const answer = answerPacket(way, first);
  // A connection is translated by what opened it.
  const back = { isAnswer: true, isPastOurs: true, fits: isNoNat } as const;
  const isToHost = packet.device === "";
  const leaving = { ...answer, inDevice: "", outDevice: backDevice };
  if (outDevice === "" && isToHost) {
    const sent = { ...leaving, outDevice: LOOPBACK };
    return [{ ...back, at: "output", packet: sent }, ...(way.isServedAtInput === true ? [] : loopedPassages(sent, way, back))];
  }
  const left: readonly Passage[] = backDevice === "" ? [] : leavingPassages(leaving, way, back);
  if (outDevice === "") return [{ ...back, at: "output", packet: leaving }, ...left];
  return [
    { ...back, at: "ingress", packet: answer },
    { ...back, at: "prerouting", packet: answer },
    isToHost ? { ...back, at: "input", packet: answer } : { ...back, at: "forward", packet: { ...answer, outDevice: backDevice } },
    ...left,
  ];
}

/** A packet where it comes in, and where it leaves: not yet translated, and no more. */
interface Ends {
  readonly coming: HookedPacket;
  readonly leaving: HookedPacket;
}

/** By a port of a bridge; "": by none. */
interface Devices {
  readonly from: string;
  readonly to: string;
}

/**
 * Put the hooks of bridges around those of IP. Pure.
 *
 * Edges: by which port of a bridge a packet goes is not known, so rules about ports can't be judged. From port to port of one bridge it is forwarded
 * there, also where it is translated on the way.
 * @source linux net/bridge/br_netfilter_hooks.c br_nf_pre_routing_finish
 */
function withBridges(
  passages: readonly Passage[],
  { coming, leaving }: Ends,
  { from, to }: Devices,
  sent: Pick<Passage, "isAnswer">,
  { isBridge = () => false, isLost = false }: HookedWay,
): readonly Passage[] {
  const at = (hook: string, packet: HookedPacket, isPastOurs: boolean): Passage => ({
    ...sent,
    at: hook,
    layer: "bridge",
    isPastOurs,
    packet: { ...packet, inDevice: undefined, outDevice: undefined },
  });
  const entry = isBridge(from) ? [at("prerouting", coming, sent.isAnswer)] : [];
  if (from !== "" && from === to && isBridge(from))
    return [...entry, ...passages, at("forward", leaving, true), at("postrouting", leaving, true)];
  return [
    ...entry,
    ...(isBridge(from) ? [at("input", coming, sent.isAnswer)] : []),
    ...passages,
    ...(isBridge(to) && !isLost ? [at("output", leaving, true), at("postrouting", leaving, true)] : []),
  ];
}
