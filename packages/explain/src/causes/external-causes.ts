import type { Cause, UnjudgedRule } from "@turnout/core";
import { calledAt, inOrder, SRCNAT } from "@turnout/host/nft";
import { evaluateChain, isOfBridges } from "@turnout/host/rules";
import type { LeaveOut, RunResult, ExternalChain, ExternalRule, ExternalTable, HookedPacket } from "@turnout/host/rules";
import { bypassedCause } from "./bypassed.ts";
import type { ChainRun } from "./bypassed.ts";
import { dropCause, orDelete, ruleText, showCommand, unjudgedRule } from "./drop-causes.ts";
import { isProxyChain, KUBE_POSTROUTING, KUBE_SERVICES } from "../tables/external-tables.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import { ownNatPriority, passagesOf } from "../ways/passages.ts";
import type { Hook, Passage } from "../ways/passage.ts";
import { strangeSource } from "./strange-source.ts";
import type { Strange } from "./strange-source.ts";

/** Where conntrack takes packets. @source linux netfilter_ipv4.h NF_IP_PRI_CONNTRACK */
const TRACKED_AT = -200;

/** What rules of others do. */
export interface ExternalFindings {
  readonly causes: readonly Cause[];
  /** What they change without keeping the packet from arriving; absent: nothing. */
  readonly notes?: readonly string[];
  readonly unjudged: readonly UnjudgedRule[];
  /** They send the packet elsewhere than it was going; absent: they don't. */
  readonly isTranslated?: true;
}

/** Say what rules of others do to a packet on its way, or to the answer. Pure. */
export function externalFindings(tables: readonly ExternalTable[], way: HookedWay): ExternalFindings {
  const causes: Cause[] = [];
  const notes: string[] = [];
  const unjudged = new Map<ExternalRule, UnjudgedRule>();
  let mark = 0;
  let unclear = 0;
  let isTranslated = false;
  for (const passage of passagesOf(way)) {
    const met: ChainRun[] = [];
    const packetAt = (hook: Hook): HookedPacket => {
      const marked = way.markBit !== 0 && !passage.isAnswer ? wantedMark(way, passage, hook, mark) : passage.packet.mark;
      return { ...passage.packet, mark: marked, unclearMark: passage.isAnswer ? 0 : unclear & ~(marked ^ mark) };
    };
    for (const one of runAt(tables, passage, way, packetAt)) {
      const { table, base: chain, ran } = one;
      met.push(one);
      isTranslated ||= ran.isTranslated && isBeforeRoute(passage);
      if (!passage.isAnswer) ({ mark, unclearMark: unclear } = ran);
      const strange = passage.isAnswer ? undefined : strangeSource(table, ran, way);
      if (strange !== undefined && "by" in strange) unjudged.set(strange.by, strange.rule);
      else if (strange !== undefined) causes.push(strange);
      causes.push(...causesOf(table, passage, ran, way, chain));
      const kept = passage.at === "postrouting" && !passage.isAnswer ? keptSource(table, chain, ran, way) : undefined;
      if (typeof kept === "string") notes.push(kept);
      else if (kept !== undefined) causes.push(kept);
      const hidden = passage.at === "postrouting" ? hiddenSource(table, chain, ran, way) : undefined;
      if (hidden !== undefined && !passage.isAnswer) notes.push(hidden);
      for (const unconfirmed of ran.unconfirmed)
        if (unconfirmed.may !== "pass" && !unjudged.has(unconfirmed.rule))
          unjudged.set(unconfirmed.rule, unjudgedRule(table, unconfirmed, passage));
      if (ran.is !== "pass") break;
    }
    const bypassed = bypassedCause(met, passage, way);
    if (bypassed !== undefined) causes.push(bypassed);
  }
  const lost = markCause(tables, way);
  if (lost !== undefined && "by" in lost) unjudged.set(lost.by, lost.rule);
  const noted = notes.length === 0 ? {} : { notes };
  return {
    causes: lost === undefined || "by" in lost ? causes : [...causes, lost],
    ...noted,
    unjudged: [...unjudged.values()],
    ...(isTranslated ? { isTranslated } : {}),
  };
}

/** Service proxies' chains are looked at otherwise; but ours accept what others would drop behind them, and where ours translate nat ends. */
function leftOut({ hasKubeChains = false, isTranslated, isServedAtInput = false, endpoint }: HookedWay, isNat: boolean): LeaveOut {
  const isEnd: Readonly<Record<string, boolean>> = { [KUBE_SERVICES]: !isServedAtInput, [KUBE_POSTROUTING]: endpoint.masquerade };
  return (chain) => {
    if (!isProxyChain(chain) || (hasKubeChains && chain === "KUBE-FORWARD")) return undefined;
    // In the filter table KUBE-SERVICES only rejects: what follows it there decides.
    return isNat && hasKubeChains && isTranslated && isEnd[chain] === true ? "end" : "skip";
  };
}

/** Play a packet through the chains of a hook; of the nat chains, until one of them translates. */
function* runAt(
  tables: readonly ExternalTable[],
  passage: Passage,
  way: HookedWay,
  packetAt: (hook: Hook) => HookedPacket,
): Generator<ChainRun> {
  let isNatEnded = false;
  for (const { table, chain, hook } of chainsAt(tables, passage)) {
    const isNat = hook.type === "nat";
    const leaveOut = leftOut(way, isNat);
    if (isNat && isNatEnded) continue;
    const ran = evaluateChain(table, chain, packetAt(hook), leaveOut);
    isNatEnded ||= isNat && (ran.isTranslated || ran.source !== undefined || [...ran.skipped].some((one) => leaveOut(one) === "end"));
    yield { table, base: chain, ran };
  }
}

function isBeforeMasquerade({ at, layer, isAnswer, isLooped = false }: Passage): boolean {
  return !isAnswer && !isLooped && layer === undefined && at !== "egress";
}

function isBeforeRoute({ at, layer, isAnswer, isLooped = false }: Passage): boolean {
  return !isAnswer && !isLooped && layer === undefined && ["ingress", "prerouting", "output"].includes(at);
}

/** Say which mark a packet has where its route is looked up, as far as that is known. Pure. */
export function routedMark(tables: readonly ExternalTable[], way: HookedWay): number {
  let mark = 0;
  let unclear = 0;
  for (const passage of passagesOf(way).filter(isBeforeRoute))
    for (const { ran } of runAt(tables, passage, way, (hook) => {
      const marked = wantedMark(way, passage, hook, mark);
      return { ...passage.packet, mark: marked, unclearMark: unclear & ~(marked ^ mark) };
    }))
      ({ mark, unclearMark: unclear } = ran);
  // Ours is set there, whether others look at the packet after that or not.
  const isAsked = way.isTranslated && way.endpoint.masquerade;
  return ((isAsked ? mark | way.markBit : mark) & ~(isAsked ? unclear & ~way.markBit : unclear)) >>> 0;
}

/** Our own chains ask for masquerade between the hooks of translation, and clear the bit behind the last of them. */
function wantedMark(
  { endpoint, markBit, isTranslated }: HookedWay,
  { at, isPastOurs, layer, isLooped = false }: Passage,
  hook: Hook,
  mark: number,
): number {
  if (!isTranslated || !endpoint.masquerade || !isPastOurs) return mark;
  const isCleared = isLooped || layer !== undefined || at === "egress" || (at === "postrouting" && calledAt(at, hook) > SRCNAT);
  return (isCleared ? mark & ~markBit : mark | markBit) >>> 0;
}

function chainsAt(
  tables: readonly ExternalTable[],
  { at, layer, packet, fits }: Passage,
): readonly { readonly table: ExternalTable; readonly chain: ExternalChain; readonly hook: Hook }[] {
  const order = inOrder(at);
  return tables
    .filter((table) => isOfBridges(table) === (layer === "bridge"))
    .flatMap((table) => [...table.chains.values()].flatMap((chain) => (chain.hook?.at === at ? [{ table, chain, hook: chain.hook }] : [])))
    .filter(
      ({ hook }) =>
        (fits?.(hook) ?? true) && (hook.devices?.includes((at === "egress" ? packet.outDevice : packet.inDevice) ?? "") ?? true),
    )
    .toSorted((one, other) => order(one.hook, other.hook));
}

function causesOf(table: ExternalTable, passage: Passage, ran: RunResult, way: HookedWay, base: ExternalChain): readonly Cause[] {
  const at = `${table.name}, chain ${ran.chain ?? base.name},`;
  const causes: Cause[] = [];
  const isNat = base.hook?.type === "nat" && !passage.isAnswer && (passage.at === "prerouting" || passage.at === "output");
  // IPVS translates it all the same, but conntrack rewrites its source.
  const isLost = way.isServedAtInput === true ? way.endpoint.masquerade : way.isTranslated;
  // What is tracked already stays so.
  const isInTime = passage.isLooped !== true && passage.layer === undefined && (base.hook?.priority ?? 0) < TRACKED_AT;
  if (ran.isUntracked && isInTime && isLost) {
    const says = `${at} keeps the ${untrackedText(passage, way.isServedAtInput === true)}${ruleText(ran.by?.text)}`;
    causes.push({
      id: "untracked",
      says,
      show: [showCommand(table, ran.byChain ?? base.name)],
      fix: `leave ${passage.isAnswer ? "answers of endpoints" : "the Service's addresses"} out of that rule`,
      ...orDelete(ran.by),
    });
  }
  const isTaken = way.isBySocket === true || way.isForProxy === true || (way.isTranslated && !passage.isPastOurs);
  if (isNat && ran.isTranslated && isTaken) {
    const what = takenText(way);
    const says = `${at} ${what}${ruleText(ran.by?.text)}`;
    causes.push({
      id: "external_translation",
      says,
      show: [showCommand(table, ran.byChain ?? base.name)],
      fix: `leave the ${way.isBySocket === true ? "endpoints'" : "Service's"} addresses out of that rule`,
      ...orDelete(ran.by),
    });
  }
  // What somebody put into a chain of ours is no rule of others: it is told with what the kernel holds otherwise.
  const isOurs = ran.chain !== undefined && isProxyChain(ran.chain);
  if (ran.is !== "pass" && !isOurs) causes.push(dropCause(table, ran, { ...passage, isBySocket: way.isBySocket === true }, base));
  return causes;
}

function takenText({ isBySocket = false, isForProxy = false }: HookedWay): string {
  if (isBySocket) return "sends what is for the endpoint elsewhere";
  return isForProxy ? "sends what is for the proxy's process elsewhere" : "translates the packet before the proxy does";
}

function untrackedText({ isAnswer }: Passage, isServedAtInput: boolean): string {
  if (isAnswer) return "answer from being tracked (notrack), so nobody puts its addresses back, and the client does not know it";
  return `packet from being tracked (notrack), so ${isServedAtInput ? "its source can't be rewritten" : "it can't be translated"}`;
}

/** Play the marks of the whole way: what is left of our bit when masquerade is decided. */
function markCause(tables: readonly ExternalTable[], way: HookedWay): Cause | Strange | undefined {
  const { markBit, endpoint, isTranslated } = way;
  if (markBit === 0 || !isTranslated) return undefined;
  let mark = 0;
  let unclear = 0;
  let hasAsked = false;
  let last: { readonly table: ExternalTable; readonly ran: RunResult } | undefined;
  const ours = { type: "nat", priority: ownNatPriority(way, SRCNAT) } as const;
  for (const passage of passagesOf(way).filter(isBeforeMasquerade)) {
    const packetAt = (): HookedPacket => {
      if (passage.isPastOurs && !hasAsked && endpoint.masquerade) {
        mark = (mark | markBit) >>> 0;
        unclear &= ~markBit;
      }
      hasAsked ||= passage.isPastOurs;
      return { ...passage.packet, mark, unclearMark: unclear };
    };
    for (const { table, base, ran } of runAt(tables, passage, way, packetAt)) {
      if (passage.at === "postrouting" && base.hook !== undefined && inOrder(passage.at)(base.hook, ours) >= 0) break;
      if ((((ran.mark ^ mark) | (ran.unclearMark ^ unclear)) & markBit) !== 0) last = { table, ran };
      ({ mark, unclearMark: unclear } = ran);
    }
  }
  const isAsked = (mark & markBit) !== 0 || (!hasAsked && endpoint.masquerade);
  if (last?.ran.by !== undefined && (unclear & markBit) !== 0) {
    const { by, byChain = "" } = last.ran;
    const says = `${last.table.name}, chain ${byChain}, sets the mark to what can't be known here, so the source may be rewritten, or not`;
    return { by, rule: { says, rule: by.text, show: showCommand(last.table, byChain) } };
  }
  if (last === undefined || isAsked === endpoint.masquerade) return undefined;
  const { table, ran } = last;
  const effect = endpoint.masquerade
    ? "so the source stays the client's, and the answer may not come back by this node"
    : "so the source is rewritten, and the endpoint does not see the client";
  const bit = `0x${markBit.toString(16)}`;
  const says = `${table.name}, chain ${ran.byChain ?? ""}, changes the mark bit ${bit} that asks for masquerade, ${effect}${ruleText(ran.by?.text)}`;
  return {
    id: "mark_bit",
    says,
    show: [showCommand(table, ran.byChain ?? "")],
    fix: `have that rule leave the bit ${bit} as it is, by a mask without it; or give the proxy another bit (--iptables-masquerade-bit) and start it anew`,
  };
}

/** Say that a rule of others rewrites the source of a packet that was to keep its own; undefined: none does. Pure. */
function hiddenSource(table: ExternalTable, base: ExternalChain, { source }: RunResult, way: HookedWay): string | undefined {
  if (source === undefined || !(way.isTranslated || way.isBySocket === true) || way.endpoint.masquerade || base.hook?.type !== "nat")
    return undefined;
  const by = source.address === "" ? "an address of this node" : source.address;
  return `${table.name}, chain ${source.chain}, rewrites the source${ruleText(source.rule.text)}: ${way.endpoint.ip} sees ${by}, and not ${way.packet.source}`;
}

/**
 * Say that a rule of others takes the packet before our chain that would rewrite its source. Pure.
 *
 * Shape: a cause where the answer does not come back for that; else what is to be known; undefined: nothing.
 */
function keptSource(table: ExternalTable, base: ExternalChain, ran: RunResult, way: HookedWay): Cause | string | undefined {
  const { endpoint, packet, outDevice, isTranslated, hasKubeChains = false, isAnsweredHere = false } = way;
  const callsOurs = base.rules.some(({ actions }) => actions.some((one) => "chain" in one && one.chain === KUBE_POSTROUTING));
  // What stays on this host has a source that is its own.
  if (outDevice === "" || !hasKubeChains || !isTranslated || !endpoint.masquerade || base.hook?.type !== "nat" || !callsOurs)
    return undefined;
  const rule = ran.rule ?? ran.returnedBy;
  if (ran.is !== "pass" || rule === undefined || ran.source !== undefined || ran.skipped.has(KUBE_POSTROUTING)) return undefined;
  const { chain = base.name } = ran;
  const says = `${table.name}, chain ${chain}, lets the packet leave before ${KUBE_POSTROUTING} rewrites its source${ruleText(rule.text)}: ${endpoint.ip} sees ${packet.source}`;
  const isOwn = endpoint.ip === packet.source;
  if (!isOwn && isAnsweredHere) return `${says}, not an address of this node`;
  return {
    id: "no_masquerade",
    says: `${says}, and ${isOwn ? "drops it, as it is its own address" : "answers it past this node, untranslated: the client does not know that answer"}`,
    show: [showCommand(table, base.name)],
    fix: `put that rule behind the one that calls ${KUBE_POSTROUTING}, or leave the endpoints' addresses out of it`,
    ...orDelete(rule),
  };
}
