import { POOLS, SMALL_POOL_MAX } from "./objects.ts";
import type { ChainObject, DestinationKind, PoolName } from "./objects.ts";
import { countRule } from "./count-sets.ts";
import type { CountSet } from "./count-sets.ts";
import { digest, DISCARD_CHAIN, fingerprint, OUTSIDE_CHAIN, quotedInterface, REFUSE_CHAIN } from "./names.ts";
import type { Destination, NodeContext, Origin, Rule } from "@turnout/core/backend";

/** Words of one family in rule text. */
export interface Words {
  /** `ip` or `ip6`. */
  readonly ip: string;
  readonly loopback: string;
  /** Chains count what they decide. */
  readonly isCounting: boolean;
}

const PLAIN_WORDS: Readonly<Record<NodeContext["family"], Words>> = {
  IPv4: { ip: "ip", loopback: "127.0.0.0/8", isCounting: false },
  IPv6: { ip: "ip6", loopback: "::1", isCounting: false },
};
const COUNTING_WORDS: typeof PLAIN_WORDS = {
  IPv4: { ...PLAIN_WORDS.IPv4, isCounting: true },
  IPv6: { ...PLAIN_WORDS.IPv6, isCounting: true },
};

/** The words of a family. */
export function wordsOf(family: NodeContext["family"], isCounting: boolean): Words {
  return (isCounting ? COUNTING_WORDS : PLAIN_WORDS)[family];
}

/** The rules of a chain, behind the one that counts what comes to it. */
export function counted(set: CountSet, { ip, isCounting }: Words, rules: readonly string[]): readonly string[] {
  return isCounting ? [countRule(set, ip), ...rules] : rules;
}

/** Make a chain object of rules. */
export function chain(name: string, rules: readonly string[]): ChainObject {
  return { kind: "chain", key: name, value: `${digest(rules.join("\n"))}/${rules.length}`, rules };
}

/** Rule text that asks for masquerade: sets our bit and leaves all others alone (R-69). */
export function markForMasquerade(bit: number): string {
  return `meta mark set meta mark or ${hexBit(bit)}`;
}

/** A mark bit as nft prints it. */
export function hexBit(bit: number): string {
  return `0x${(2 ** bit).toString(16).padStart(8, "0")}`;
}

/** What one pick chain is for. */
export interface Pick {
  readonly where: DestinationKind;
  /** As nft says it. */
  readonly protocol: string;
  readonly pool: PoolName;
  /** Of a large pool, from {@link slotsFor}; undefined: the chain is for pools with all numbers of slots up to {@link SMALL_POOL_MAX}. */
  readonly slots: number | undefined;
  /** The map its endpoints are in. */
  readonly map: string;
}

/** Draws before the fallback. Fewer than half of the slots are vacant: it gets under one packet in 256; with 3 of 4 taken one in 65,536. */
const DRAWS = 8;
/** The numbers of slots of small pools of which some may be vacant. */
const VACANT_SLOTS: readonly number[] = [4, 8, SMALL_POOL_MAX];

/** Say among how many slots `count` (at least 1) endpoints are drawn: the next power of two, so that more than half are taken. */
export function slotsFor(count: number): number {
  return 2 ** Math.ceil(Math.log2(count));
}

/**
 * Make the chain that picks one endpoint of a pool; it serves every destination of its protocol (of large pools: with as many slots, in its map).
 *
 * Shape: draws a slot; a lookup that finds nothing ends its rule, and the next one draws again, so all endpoints are equally likely. The
 * last rules draw from the half that is always taken. Each number of slots of a small pool has places of its own ({@link atPlaces}), and the
 * chain draws for one number after the other: at those of another number nothing lies. So an endpoint more or less leaves the chain, and the
 * verdict that leads to it, as it is.
 */
export function pickChain({ where, protocol, pool, slots, map }: Pick, words: Words): ChainObject {
  const { ip } = words;
  const from = POOLS.find(({ name }) => name === pool)?.from ?? 0;
  const among = slots === undefined ? "" : `-${slots}-in-${map.slice(map.lastIndexOf("-") + 1)}`;
  const name = `${where === "nodeport" ? "np-" : ""}pick-${pool === "local" ? "local-" : ""}${protocol}${among}`;
  const destination = where === "nodeport" ? `${protocol} dport` : `${ip} daddr . ${protocol} dport`;
  const draw = (count: number, first: number): string => {
    const index = `numgen random mod ${count}${first === 0 ? "" : ` offset ${first}`}`;
    return `dnat ${ip} to ${destination} . ${index} map @${map}`;
  };
  const times = <T>(rules: readonly T[]): readonly T[] => Array.from({ length: DRAWS }, () => rules).flat();
  if (slots !== undefined) {
    const rules = [...times([draw(slots, from)]), draw(slots / 2, from)];
    return chain(name, counted("counted-connections", words, rules));
  }
  // Of one or two slots none is vacant.
  const full = [1, 2].map((count) => draw(count, from + count));
  const drawn = times(VACANT_SLOTS.map((count) => draw(count, from + count)));
  const taken = VACANT_SLOTS.map((count) => draw(count / 2, from + count));
  // Again for a packet that comes while a pool gets fewer slots: lookups see the newest elements.
  return chain(name, counted("counted-connections", words, [...full, ...drawn, ...taken, ...full]));
}

/** Lay the endpoints of a small pool at their places: behind as many vacant ones ("") as it has slots, so that no two numbers of slots share a place. */
export function atPlaces(endpoints: readonly string[]): readonly string[] {
  return endpoints.length === 0 ? endpoints : [...Array<string>(slotsFor(endpoints.length)).fill(""), ...endpoints];
}

/** The chain that a packet from outside some source ranges does not come back from. Name and content depend on the ranges alone. */
export function sourcesChain(ranges: readonly string[], { ip, isCounting }: Words): ChainObject {
  const rules = [...ranges.map((range) => `${ip} saddr ${range} return`), isCounting ? `goto ${OUTSIDE_CHAIN}` : "drop"];
  return chain(`from-${digest(ranges.join(" "))}`, rules);
}

/** Rule text that matches an origin; "" matches every packet. `outsideSourceRanges` is a jump that drops. */
export function originMatch(origin: Origin, destination: Destination, { detector }: NodeContext, words: Words): string {
  const { ip } = words;
  switch (origin) {
    case "anyone":
      return "";
    case "thisHost":
      return "fib saddr type local ";
    case "outsideSourceRanges":
      return `jump ${sourcesChain(destination.sourceRanges ?? [], words).key} `;
    case "localPod":
    case "offCluster": {
      const not = origin === "offCluster" ? "!= " : "";
      if (detector === undefined) return "";
      if (detector.by === "cidr") return `${ip} saddr ${not}${detector.cidrs[0] ?? ""} `;
      if (detector.by === "interface") return `iifname ${not}${quotedInterface(detector.name)} `;
      return `iifname ${not}${quotedInterface(detector.prefix, "*")} `;
    }
  }
}

const ORIGIN_NAMES: Readonly<Record<Origin, string>> = {
  anyone: "",
  thisHost: "host-",
  outsideSourceRanges: "",
  localPod: "pod-",
  offCluster: "offcluster-",
};

/** The name of a rule in a chain's name, without who it is for and whether it masquerades. Pure. */
export function originless(name: string): string {
  return name.replace(/^(?:host-|pod-|offcluster-)?(?:masq-)?/, "");
}

/** Where each pool of a destination is picked from. */
export interface PickTargets {
  readonly cluster: string;
  readonly local: string;
}

/** The verdict of one rule, as nft says it. */
export function ruleVerdict({ to }: Rule, targets: PickTargets, { isCounting }: Words): string {
  if (to === "drop") return isCounting ? `goto ${DISCARD_CHAIN}` : "drop";
  return `goto ${to === "reject" ? REFUSE_CHAIN : targets[to]}`;
}

/**
 * Make the verdict of a destination from its rules, and the chain that carries them out where one verdict is not enough.
 *
 * Shape: one plain rule is a verdict by itself; anything else gets a chain whose name says what it does and which every
 * destination with the same shape shares.
 */
export function policyFor(
  destination: Destination,
  targets: PickTargets,
  node: NodeContext,
  words: Words,
): { readonly verdict: string; readonly chain: ChainObject | undefined } {
  const { rules } = destination;
  const only = rules[0];
  if (rules.length === 1 && only?.from === "anyone" && !only.masquerade)
    return { verdict: ruleVerdict(only, targets, words), chain: undefined };
  const name = rules.map((rule) => ruleName(rule, destination, targets, words)).join(".");
  const texts = rules.map((rule) => {
    const match = originMatch(rule.from, destination, node, words);
    // The sources chain drops by itself; its jump comes back for allowed sources.
    if (rule.from === "outsideSourceRanges") return match.trimEnd();
    const mark = rule.masquerade ? `${markForMasquerade(node.settings.masqueradeBit)} ` : "";
    return `${match}${mark}${ruleVerdict(rule, targets, words)}`;
  });
  return { verdict: `goto ${name}`, chain: sharedChain(name, texts) };
}

/** Chains that many rows share, by all that is in them: a digest for each of ten thousand rows is a tenth of what rendering costs. */
const sharedChains = new Map<string, ChainObject>();
/** Those with source ranges or affinity come and go with their rows. */
const SHARED_MAX = 1_000;

function sharedChain(name: string, rules: readonly string[]): ChainObject {
  const memo = [name, ...rules].join("\n");
  let found = sharedChains.get(memo);
  if (found === undefined) {
    if (sharedChains.size >= SHARED_MAX) sharedChains.clear();
    sharedChains.set(memo, (found = chain(name, rules)));
  }
  return found;
}

function ruleName(rule: Rule, destination: Destination, targets: PickTargets, words: Words): string {
  if (rule.from === "outsideSourceRanges") return sourcesChain(destination.sourceRanges ?? [], words).key;
  const target = rule.to === "drop" ? "drop" : rule.to === "reject" ? REFUSE_CHAIN : targets[rule.to];
  return `${ORIGIN_NAMES[rule.from]}${rule.masquerade ? "masq-" : ""}${target}`;
}

/** The key of an affinity entry behind the client's address: two constants, which nft takes in a lookup key only in this guise. */
export function constants(...numbers: readonly number[]): string {
  return numbers.map((number) => `numgen random mod 1 offset ${number}`).join(" . ");
}

/** Name of the chain for one endpoint of an affinity row. */
export function endpointChainName(rowKey: string, endpoint: string): string {
  return `ep-${fingerprint(`${rowKey} ${endpoint}`).hex}`;
}

/** The key of an endpoint's {@link AffinityObject}, by the name of its chain; undefined for other chains. */
export function affinityKeyOf(chainName: string): string | undefined {
  const [, high, low] = /^ep-([0-9a-f]{8})([0-9a-f]{8})$/.exec(chainName) ?? [];
  return high === undefined || low === undefined ? undefined : `${parseInt(high, 16)} . ${parseInt(low, 16)}`;
}

/** The chain of an affinity key: the opposite of {@link affinityKeyOf}. */
export function affinityChainOf(key: string): string {
  const parts = key.split(" . ").map((part) => Number(part).toString(16).padStart(8, "0"));
  return `ep-${parts.join("")}`;
}

/** The chain that remembers a client's endpoint (each new connection renews the time) and sends it there. */
export function endpointChain(
  rowKey: string,
  protocol: string,
  endpoint: string,
  target: string,
  seconds: number,
  { ip }: Words,
): ChainObject {
  const { high, low } = fingerprint(`${rowKey} ${endpoint}`);
  const remember = `update @affinity { ${ip} saddr . ${constants(high, low)} timeout ${seconds}s }`;
  return chain(endpointChainName(rowKey, endpoint), [remember, `meta l4proto ${protocol} dnat ${ip} to ${target}`]);
}

/** The chain that sends a client where it was sent before, and a new one to a random endpoint of the pool. */
export function affinityChain(name: string, rowKey: string, endpoints: readonly string[], words: Words): ChainObject {
  const { ip } = words;
  const known = endpoints.map((endpoint) => {
    const { high, low } = fingerprint(`${rowKey} ${endpoint}`);
    return `${ip} saddr . ${constants(high, low)} @affinity goto ${endpointChainName(rowKey, endpoint)}`;
  });
  const { high, low } = fingerprint(name);
  const rules = [...known, `${constants(high, low)} . numgen random mod ${endpoints.length} vmap @affinity-endpoints`];
  return chain(name, counted("counted-connections", words, rules));
}
