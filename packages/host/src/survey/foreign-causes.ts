import type { Cause, UnjudgedRule } from "@turnout/core";
import { dropCause, ruleText, showCommand, TRANSLATED_AT, unjudgedRule } from "./drop-causes.ts";
import { isProxyChain } from "./foreign-tables.ts";
import type { HookedWay } from "./hooked-way.ts";
import { keptSource } from "./kept-source.ts";
import { playChain } from "./rules/play.ts";
import type { Played } from "./rules/play.ts";
import type { ForeignChain, ForeignRule, ForeignTable, HookedPacket } from "./rules/rule.ts";

/** Where our nat chains are called in, after the routing decision. */
const MASQUERADED_AT = 100;
/** Clients send from a port that their system chooses, Linux from 32768 to 60999. Rules about other ports are not about these. */
const CLIENT_PORT = 47_001;

/** A hook, and a packet there. */
interface Passage {
  readonly at: string;
  readonly packet: HookedPacket;
  readonly isAnswer: boolean;
  readonly fits?: (priority: number) => boolean;
}

/** What rules of others do. */
export interface ForeignFindings {
  readonly causes: readonly Cause[];
  /** What they change without keeping the packet from arriving; absent: nothing. */
  readonly notes?: readonly string[];
  readonly unjudged: readonly UnjudgedRule[];
}

/** Say what rules of others do to a packet on its way, or to the answer. Pure. */
export function foreignFindings(tables: readonly ForeignTable[], way: HookedWay): ForeignFindings {
  const causes: Cause[] = [];
  const notes: string[] = [];
  const unjudged = new Map<ForeignRule, UnjudgedRule>();
  let { mark } = firstPacket(way);
  let unclear = 0;
  for (const passage of passagesOf(way)) {
    for (const { table, chain } of chainsAt(tables, passage)) {
      const marked =
        way.markBit !== 0 && !passage.isAnswer && chain.hook !== undefined
          ? wantedMark(way, passage, chain.hook.priority, mark)
          : passage.packet.mark;
      const played = playChain(
        table,
        chain,
        { ...passage.packet, mark: marked, unclearMark: passage.isAnswer ? 0 : unclear & ~(marked ^ mark) },
        (name) => isLeftOut(way, name),
      );
      if (!passage.isAnswer) ({ mark, unclearMark: unclear } = played);
      const strange = passage.isAnswer ? undefined : strangeSource(table, played, way);
      if (strange !== undefined) unjudged.set(strange.by, strange.rule);
      causes.push(...causesOf(table, passage, played, way, chain));
      const kept = passage.at === "postrouting" && !passage.isAnswer ? keptSource(table, chain, played, way) : undefined;
      if (typeof kept === "string") notes.push(kept);
      else if (kept !== undefined) causes.push(kept);
      for (const doubt of played.doubts)
        if (doubt.may !== "pass" && !unjudged.has(doubt.rule)) unjudged.set(doubt.rule, unjudgedRule(table, doubt, passage));
      if (played.is !== "pass") break;
    }
  }
  const lost = markCause(tables, way);
  if (lost !== undefined && "by" in lost) unjudged.set(lost.by, lost.rule);
  const noted = notes.length === 0 ? {} : { notes };
  return { causes: lost === undefined || "by" in lost ? causes : [...causes, lost], ...noted, unjudged: [...unjudged.values()] };
}

/** Service proxies' chains are looked at otherwise; but ours accept what others would drop behind them. */
function isLeftOut({ hasKubeChains = false }: HookedWay, chain: string): boolean {
  return isProxyChain(chain) && !(hasKubeChains && chain === "KUBE-FORWARD");
}

/** Say which mark a packet has where its route is looked up, as far as that is known. Pure. */
export function routedMark(tables: readonly ForeignTable[], way: HookedWay): number {
  let mark = 0;
  let unclear = 0;
  for (const passage of passagesOf(way).filter(({ at, isAnswer }) => !isAnswer && ["ingress", "prerouting", "output"].includes(at)))
    for (const { table, chain } of chainsAt(tables, passage)) {
      const marked = wantedMark(way, passage, chain.hook?.priority ?? 0, mark);
      const played = playChain(table, chain, { ...passage.packet, mark: marked, unclearMark: unclear & ~(marked ^ mark) }, isProxyChain);
      ({ mark, unclearMark: unclear } = played);
    }
  // Ours is set there, whether others look at the packet after that or not.
  const isAsked = way.isTranslated && way.endpoint.masquerade;
  return ((isAsked ? mark | way.markBit : mark) & ~(isAsked ? unclear & ~way.markBit : unclear)) >>> 0;
}

/** A rule that can't be judged, as it was read and as it is told. */
interface Strange {
  readonly by: ForeignRule;
  readonly rule: UnjudgedRule;
}

/** Answers to an address that this host doesn't have come back only where somebody sends them here. */
function strangeSource(table: ForeignTable, { source }: Played, { isLocal }: HookedWay): Strange | undefined {
  if (source === undefined || source.address === "" || isLocal(source.address)) return undefined;
  const { address, chain, rule } = source;
  const says = `${table.name}, chain ${chain}, rewrites the source to ${address}, which this host does not have: answers may go elsewhere`;
  return { by: rule, rule: { says, rule: rule.text, show: showCommand(table, chain) } };
}

/** Our own chains ask for masquerade between the hooks of translation. */
function wantedMark({ endpoint, markBit, isTranslated }: HookedWay, { at }: Passage, priority: number, mark: number): number {
  const isAfter = (at !== "prerouting" && at !== "output") || priority > TRANSLATED_AT;
  return isTranslated && endpoint.masquerade && isAfter ? (mark | markBit) >>> 0 : mark;
}

function chainsAt(
  tables: readonly ForeignTable[],
  { at, packet, fits }: Passage,
): readonly { readonly table: ForeignTable; readonly chain: ForeignChain }[] {
  const found = tables.flatMap((table) =>
    [...table.chains.values()].filter(({ hook }) => hook?.at === at).map((chain) => ({ table, chain })),
  );
  return found
    .filter(
      ({ chain: { hook } }) =>
        hook !== undefined && (fits?.(hook.priority) ?? true) && (hook.device === undefined || hook.device === packet.inDevice),
    )
    .toSorted((a, b) => (a.chain.hook?.priority ?? 0) - (b.chain.hook?.priority ?? 0));
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

/** The hooks that a packet and its answer come by, in order. */
function passagesOf(way: HookedWay): readonly Passage[] {
  const { packet, endpoint, outDevice, backDevice, isTranslated } = way;
  const isAnsweredThere = backDevice === "" || packet.device === "" ? undefined : backDevice === packet.device;
  const first: HookedPacket = { ...firstPacket(way), isAnsweredThere };
  const sent: HookedPacket = { ...first, destination: endpoint.ip, destinationPort: endpoint.port, isTranslated };
  const isFromHost = packet.device === "";
  const entry = isFromHost ? "output" : "prerouting";
  const isBefore = (priority: number): boolean => priority <= TRANSLATED_AT;
  const there: Passage[] = [
    ...(isFromHost ? [] : [{ at: "ingress", packet: first, isAnswer: false }]),
    { at: entry, packet: { ...first, outDevice: isFromHost ? outDevice : "" }, isAnswer: false, fits: isBefore },
    { at: entry, packet: { ...sent, outDevice: isFromHost ? outDevice : "" }, isAnswer: false, fits: (priority) => !isBefore(priority) },
    ...(outDevice === "" ? [{ at: "input", packet: sent, isAnswer: false }] : []),
    ...(outDevice !== "" && !isFromHost ? [{ at: "forward", packet: { ...sent, outDevice }, isAnswer: false }] : []),
    ...(outDevice === "" ? [] : [{ at: "postrouting", packet: { ...sent, inDevice: "", outDevice }, isAnswer: false }]),
  ];
  const answer: HookedPacket = {
    ...sent,
    source: endpoint.ip,
    destination: packet.source,
    sourcePort: endpoint.port,
    destinationPort: CLIENT_PORT,
    inDevice: outDevice,
    outDevice: "",
    state: "established",
    isAnsweredThere: true,
  };
  const back: Passage[] =
    outDevice === ""
      ? [{ at: "output", packet: { ...answer, inDevice: "", outDevice: backDevice }, isAnswer: true }]
      : [
          { at: "ingress", packet: answer, isAnswer: true },
          { at: "prerouting", packet: answer, isAnswer: true },
          isFromHost
            ? { at: "input", packet: answer, isAnswer: true }
            : { at: "forward", packet: { ...answer, outDevice: backDevice }, isAnswer: true },
        ];
  return [...there, ...back, { at: "postrouting", packet: { ...answer, inDevice: "", outDevice: backDevice }, isAnswer: true }].filter(
    ({ at }) => at !== "postrouting" || backDevice !== "" || outDevice !== "",
  );
}

function causesOf(table: ForeignTable, passage: Passage, played: Played, way: HookedWay, base: ForeignChain): readonly Cause[] {
  const at = `${table.name}, chain ${played.chain ?? base.name}`;
  const causes: Cause[] = [];
  const isNat = base.hook?.type === "nat" && !passage.isAnswer && (passage.at === "prerouting" || passage.at === "output");
  if (played.isUntracked && !passage.isAnswer && way.isTranslated) {
    const says = `${at} keeps the packet from being tracked (notrack), so it can't be translated${ruleText(played.by?.text)}`;
    causes.push({
      id: "untracked",
      says,
      show: [showCommand(table, played.byChain ?? base.name)],
      mend: "leave the Service's addresses out of that rule, or delete it",
      ...deletionOf(played),
    });
  }
  if (isNat && played.isTranslated && way.isTranslated && (base.hook?.priority ?? 0) <= TRANSLATED_AT) {
    const says = `${at} translates the packet before the proxy does${ruleText(played.by?.text)}`;
    causes.push({
      id: "foreign_translation",
      says,
      show: [showCommand(table, played.byChain ?? base.name)],
      mend: "leave the Service's addresses out of that rule, or delete it",
      ...deletionOf(played),
    });
  }
  if (played.is !== "pass") causes.push(dropCause(table, played, { ...passage, isBySocket: way.isBySocket === true }, base));
  return causes;
}

function deletionOf({ by }: Played): Pick<Cause, "commands"> {
  return by === undefined ? {} : { commands: [by.deletion] };
}

/** Play the marks of the whole way: what is left of our bit when masquerade is decided. */
function markCause(tables: readonly ForeignTable[], way: HookedWay): Cause | Strange | undefined {
  const { markBit, endpoint, isTranslated } = way;
  if (markBit === 0 || !isTranslated) return undefined;
  let mark = 0;
  let unclear = 0;
  let hasAsked = false;
  let last: { readonly table: ForeignTable; readonly played: Played } | undefined;
  for (const passage of passagesOf(way).filter(({ isAnswer }) => !isAnswer)) {
    for (const { table, chain } of chainsAt(tables, passage)) {
      const priority = chain.hook?.priority ?? 0;
      if (passage.at === "postrouting" && priority >= MASQUERADED_AT) continue;
      const isAfter = passage.packet.isTranslated;
      if (isAfter && !hasAsked && endpoint.masquerade) {
        mark = (mark | markBit) >>> 0;
        unclear &= ~markBit;
      }
      hasAsked ||= isAfter;
      const played = playChain(table, chain, { ...passage.packet, mark, unclearMark: unclear }, isProxyChain);
      if ((((played.mark ^ mark) | (played.unclearMark ^ unclear)) & markBit) !== 0) last = { table, played };
      ({ mark, unclearMark: unclear } = played);
    }
  }
  const isAsked = (mark & markBit) !== 0 || (!hasAsked && endpoint.masquerade);
  if (last?.played.by !== undefined && (unclear & markBit) !== 0) {
    const { by, byChain = "" } = last.played;
    const says = `${last.table.name}, chain ${byChain}, sets the mark to what can't be known here, so the source may be rewritten, or not`;
    return { by, rule: { says, rule: by.text, show: showCommand(last.table, byChain) } };
  }
  if (last === undefined || isAsked === endpoint.masquerade) return undefined;
  const { table, played } = last;
  const effect = endpoint.masquerade
    ? "so the source stays the client's, and the answer may not come back by this node"
    : "so the source is rewritten, and the endpoint does not see the client";
  const bit = `0x${markBit.toString(16)}`;
  const says = `${table.name}, chain ${played.byChain ?? ""}, changes the mark bit ${bit} that asks for masquerade, ${effect}${ruleText(played.by?.text)}`;
  return {
    id: "mark_bit",
    says,
    show: [showCommand(table, played.byChain ?? "")],
    mend: `have that rule leave the bit alone (mask ${bit}), or give the proxy another one: --iptables-masquerade-bit`,
  };
}
