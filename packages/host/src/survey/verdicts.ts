import { targetOf } from "./iptables-rules.ts";
import type { IptablesChain } from "./iptables-rules.ts";
import { targetsOf } from "./nft-rules.ts";
import type { ForeignChain, NftRule } from "./nft-rules.ts";

/** A rule of either tool, as far as a diagnosis looks at it. */
export interface RuleSense {
  /** What becomes of packets that it fits; `goes on`: it only counts or marks, or can't be read. */
  readonly fate: "accepts" | "drops" | "translates" | "calls" | "goes on";
  /** It fits every packet. */
  readonly isForAll: boolean;
  /** It fits packets of connections that exist already, and no others. */
  readonly isForKnownFlows: boolean;
  /** Chains that it calls. */
  readonly calls: readonly string[];
}

const DROPS = new Set(["drop", "reject"]);
const TRANSLATES = new Set(["dnat", "redirect", "tproxy"]);
/** Statements that decide nothing about whether a rule fits. */
const SILENT = new Set(["counter", "log", "mangle", "notrack", "comment", "meter"]);

/** Tell what a rule of nft does. Pure. */
export function senseOfNft(rule: Pick<NftRule, "expr">): RuleSense {
  const statements = rule.expr.flatMap((one) => (typeof one === "object" && one !== null ? Object.entries(one) : []));
  const words = statements.map(([word]) => word);
  const calls = targetsOf(rule);
  const decisive = words.filter((word) => !SILENT.has(word));
  const conditions = decisive.filter((word) => word === "match" || word === "limit" || word === "xt" || word === "vmap" || word === "fib");
  const states = statements.flatMap(([word, value]) => (word === "match" ? knownStates(value) : []));
  const has = (some: ReadonlySet<string>): boolean => words.some((word) => some.has(word));
  const fate = has(DROPS)
    ? "drops"
    : has(TRANSLATES)
      ? "translates"
      : words.includes("accept")
        ? "accepts"
        : calls.length > 0
          ? "calls"
          : "goes on";
  // What this nft can't print (null) may be a condition.
  const isForAll = conditions.length === 0 && !rule.expr.includes(null);
  return { fate, isForAll, isForKnownFlows: states.length > 0 && states.every((isKnown) => isKnown), calls };
}

/** For a match on a connection's state: whether it is one of known connections alone. */
function knownStates(match: unknown): readonly boolean[] {
  const { left, right, op } = match as { readonly left?: unknown; readonly right?: unknown; readonly op?: string };
  if (JSON.stringify(left) !== '{"ct":{"key":"state"}}') return [];
  // A word, a list of words, or a set of them.
  const inner: unknown = typeof right === "object" && right !== null && "set" in right ? right.set : right;
  const states: readonly unknown[] = Array.isArray(inner) ? (inner as readonly unknown[]) : [inner];
  return [op !== "!=" && states.length > 0 && states.every((state) => state === "established" || state === "related")];
}

const IPTABLES_FATES: Readonly<Record<string, RuleSense["fate"]>> = {
  ACCEPT: "accepts",
  DROP: "drops",
  REJECT: "drops",
  DNAT: "translates",
  REDIRECT: "translates",
  TPROXY: "translates",
};

/** Tell what a rule of iptables does; `isChain` tells a chain's name from a target's. Pure. */
export function senseOfIptables(rule: string, isChain: (target: string) => boolean): RuleSense {
  const target = targetOf(rule);
  const calls = target !== undefined && isChain(target) ? [target] : [];
  const fate = calls.length > 0 ? "calls" : (IPTABLES_FATES[target ?? ""] ?? "goes on");
  const before = rule.split(/(?:^| )-[jg] /)[0] ?? "";
  const conditions = before.replaceAll(/-m comment|--comment (?:"(?:[^"\\]|\\.)*"|\S+)/g, "").trim();
  const states = /--(?:ct)?state (\S+)/.exec(before)?.[1]?.split(",") ?? [];
  const isKnown =
    states.length > 0 && !/! --(?:ct)?state/.test(before) && states.every((one) => one === "RELATED" || one === "ESTABLISHED");
  return { fate, isForAll: conditions === "", isForKnownFlows: isKnown, calls };
}

/** A chain of either tool whose rules have been read, with a way to those that it calls. */
export interface SensedChain {
  readonly name: string;
  readonly isDropping: boolean;
  readonly rules: readonly RuleSense[];
  /** It may have more rules than these. */
  readonly isCut: boolean;
}

/** The chains of one table by their names. */
export type SensedTable = ReadonlyMap<string, SensedChain>;

/** Read the chains of one table of nft. Pure. */
export function sensedNft(chains: readonly ForeignChain[]): SensedTable {
  return new Map(
    chains.map(({ name, base, rules, isCut }) => [
      name,
      { name, isDropping: base?.policy === "drop", rules: rules.map(senseOfNft), isCut },
    ]),
  );
}

/** Read the chains of one table of iptables. Pure. */
export function sensedIptables(chains: readonly IptablesChain[], names: readonly string[]): SensedTable {
  const known = new Set(names);
  return new Map(
    chains.map(({ name, policy, rules, isCut }) => [
      name,
      { name, isDropping: policy === "DROP", rules: rules.map((rule) => senseOfIptables(rule, (target) => known.has(target))), isCut },
    ]),
  );
}

/** Tell whether packets that go through a chain may be translated there, or by what it calls. Pure. */
export function mayTranslate(table: SensedTable, name: string, seen: Set<string> = new Set()): boolean {
  const chain = table.get(name);
  if (chain === undefined || seen.has(name)) return false;
  seen.add(name);
  return chain.rules.some(({ fate, calls }) => fate === "translates" || calls.some((one) => mayTranslate(table, one, seen)));
}

/**
 * Tell what a base chain does to a packet that begins a connection and that nothing in particular is known of: it lets it through, drops each
 * one, or some, for all that can be read. Pure.
 *
 * Edges: what isn't listed of a chain, or can't be read, may accept.
 */
export function fateOfNew(table: SensedTable, name: string): "through" | "some" | "none" {
  const chain = table.get(name);
  if (chain === undefined) return "through";
  let mayPass = false;
  for (const rule of chain.rules) {
    if (rule.isForKnownFlows) continue;
    if (rule.isForAll && rule.fate === "accepts") return "through";
    if (rule.isForAll && rule.fate === "drops") return mayPass ? "some" : "none";
    mayPass ||= rule.fate === "accepts" || (rule.fate === "calls" && rule.calls.some((one) => mayAccept(table, one)));
  }
  if (!chain.isDropping) return "through";
  return mayPass || chain.isCut ? "some" : "none";
}

function mayAccept(table: SensedTable, name: string, seen: Set<string> = new Set()): boolean {
  const chain = table.get(name);
  // A service proxy's chains are not read, and what can't be read may accept.
  if (chain === undefined) return true;
  if (seen.has(name)) return false;
  seen.add(name);
  return (
    chain.isCut ||
    chain.rules.some(
      ({ fate, isForKnownFlows, calls }) => !isForKnownFlows && (fate === "accepts" || calls.some((one) => mayAccept(table, one, seen))),
    )
  );
}
