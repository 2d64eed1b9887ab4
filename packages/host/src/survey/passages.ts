import { TRANSLATED_AT } from "./drop-causes.ts";
import type { HookedWay } from "./hooked-way.ts";
import type { ForeignChain, HookedPacket } from "./rules/rule.ts";

/** Clients send from a port that their system chooses, Linux from 32768 to 60999. Rules about other ports are not about these. */
const CLIENT_PORT = 47_001;
/** Where IPVS takes packets for its virtual servers, behind those that filter. @source linux net/netfilter/ipvs/ip_vs_core.c ip_vs_ops4 */
const IPVS_INPUT_AT = 99;

type Hook = NonNullable<ForeignChain["hook"]>;

/** A hook, and a packet there. */
export interface Passage {
  readonly at: string;
  readonly packet: HookedPacket;
  readonly isAnswer: boolean;
  /** Our nat chains have seen it before. */
  readonly isPastOurs: boolean;
  /** Which of the hook's chains it meets; absent: all. */
  readonly fits?: (hook: Hook) => boolean;
}

/** The hooks that a packet and its answer come by, in order. Pure. */
export function passagesOf(way: HookedWay): readonly Passage[] {
  const { packet, outDevice, backDevice } = way;
  const isAnsweredThere = backDevice === "" || packet.device === "" ? undefined : backDevice === packet.device;
  const first: HookedPacket = { ...firstPacket(way), isAnsweredThere };
  const there = way.isServedAtInput === true ? toBalancer(way, first) : toEndpoint(way, first);
  return [...there, ...answersOf(way, first)].filter(({ at }) => at !== "postrouting" || backDevice !== "" || outDevice !== "");
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

const isBefore = ({ priority }: Hook): boolean => priority <= TRANSLATED_AT;
const isBehind = (hook: Hook): boolean => !isBefore(hook);

/** Translated where it comes in, and forwarded. */
function toEndpoint(way: HookedWay, first: HookedPacket): readonly Passage[] {
  const { packet, outDevice } = way;
  const isFromHost = packet.device === "";
  const sent = sentPacket(way, first);
  const entry = { at: isFromHost ? "output" : "prerouting", isAnswer: false } as const;
  const leaving = isFromHost ? outDevice : "";
  const past = { isAnswer: false, isPastOurs: true } as const;
  return [
    ...(isFromHost ? [] : [{ at: "ingress", packet: first, isAnswer: false, isPastOurs: false }]),
    { ...entry, packet: { ...first, outDevice: leaving }, isPastOurs: false, fits: isBefore },
    { ...entry, packet: { ...sent, outDevice: leaving }, isPastOurs: true, fits: isBehind },
    ...(outDevice === "" ? [{ ...past, at: "input", packet: sent }] : []),
    ...(outDevice !== "" && !isFromHost ? [{ ...past, at: "forward", packet: { ...sent, outDevice } }] : []),
    ...(outDevice === "" ? [] : [{ ...past, at: "postrouting", packet: { ...sent, inDevice: "", outDevice } }]),
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
      ? [{ ...fresh, at: "output", packet: { ...first, outDevice: "lo" }, fits: isBefore }]
      : [
          { ...fresh, at: "ingress", packet: first },
          { ...fresh, at: "prerouting", packet: first, fits: isBefore },
          { ...past, at: "prerouting", packet: first, fits: isBehind },
          { ...past, at: "input", packet: first, fits: ({ priority }) => priority < IPVS_INPUT_AT },
        ];
  const going: readonly Passage[] = [
    // A connection is translated once, where it begins.
    { ...past, at: "output", packet: sent, fits: ({ type }) => type !== "nat" },
    { ...past, at: "postrouting", packet: sent },
  ];
  return outDevice === "" ? coming : [...coming, ...going];
}

function answersOf(way: HookedWay, first: HookedPacket): readonly Passage[] {
  const { packet, endpoint, outDevice, backDevice } = way;
  const answer: HookedPacket = {
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
  const back = { isAnswer: true, isPastOurs: true } as const;
  const leaving = { ...answer, inDevice: "", outDevice: backDevice };
  const coming: readonly Passage[] =
    outDevice === ""
      ? [{ ...back, at: "output", packet: leaving }]
      : [
          { ...back, at: "ingress", packet: answer },
          { ...back, at: "prerouting", packet: answer },
          packet.device === ""
            ? { ...back, at: "input", packet: answer }
            : { ...back, at: "forward", packet: { ...answer, outDevice: backDevice } },
        ];
  return [...coming, { ...back, at: "postrouting", packet: leaving }];
}
