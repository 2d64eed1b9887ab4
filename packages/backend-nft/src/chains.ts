import { ChainRules, FIRST_ID, FIRST_PLACE, POOLS, SMALL_POOL_MAX } from "./objects.ts";
import type { ChainObject, ChainRule, DestinationKind, PoolName } from "./objects.ts";
import { countRule } from "./count-sets.ts";
import type { CountSet } from "./count-sets.ts";
import { clientsMap, digest, DISCARD_CHAIN, fingerprint, interfaceName, OUTSIDE_CHAIN, REFUSE_CHAIN, servingMap } from "./names.ts";
import { concat, goTo, match, meta, numgen, payload, printRule, setMark, vmap } from "@turnout/host/nft-statement";
import type { NftExpression, NftRuleStatement, NftVerdict } from "@turnout/host/nft-statement";
import { hostPort } from "@turnout/core/backend";
import type { Destination, NodeContext, Origin, Rule } from "@turnout/core/backend";

/** What rules of one family are made of. */
export interface Words {
  readonly ip: "ip" | "ip6";
  readonly loopback: NftExpression;
  /** Chains count what they decide. */
  readonly isCounting: boolean;
}

const PLAIN_WORDS: Readonly<Record<NodeContext["family"], Words>> = {
  IPv4: { ip: "ip", loopback: { prefix: { addr: "127.0.0.0", len: 8 } }, isCounting: false },
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
export function counted(set: CountSet, { ip, isCounting }: Words, rules: readonly ChainRule[]): readonly ChainRule[] {
  return isCounting ? [countRule(set, ip), ...rules] : rules;
}

/** Make a chain object of rules. */
export function chain(name: string, make: () => readonly ChainRule[]): ChainObject {
  const rules = make();
  return {
    kind: "chain",
    key: name,
    value: `${digest(rules.map(printRule).join("\n"))}/${rules.length}`,
    rules: new ChainRules(make),
  };
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
  const destination = [...(where === "nodeport" ? [] : [payload(ip, "daddr")]), payload(protocol, "dport")];
  const draw = (count: number, first: number): ChainRule => {
    const key = concat(...destination, first === 0 ? numgen(count) : numgen(count, first));
    return [{ dnat: { family: ip, addr: { map: { key, data: `@${map}` } } } }];
  };
  const times = <T>(rules: readonly T[]): readonly T[] => Array.from({ length: DRAWS }, () => rules).flat();
  if (slots !== undefined) {
    const rules = [...times([draw(slots, from)]), draw(slots / 2, from)];
    return chain(name, () => counted("counted-connections", words, rules));
  }
  // Of one or two slots none is vacant.
  const full = [1, 2].map((count) => draw(count, from + count));
  const drawn = times(VACANT_SLOTS.map((count) => draw(count, from + count)));
  const taken = VACANT_SLOTS.map((count) => draw(count / 2, from + count));
  // Again for a packet that comes while a pool gets fewer slots: lookups see the newest elements.
  return chain(name, () => counted("counted-connections", words, [...full, ...drawn, ...taken, ...full]));
}

/** Lay the endpoints of a small pool at their places: behind as many vacant ones ("") as it has slots, so that no two numbers of slots share a place. */
export function atPlaces(endpoints: readonly string[]): readonly string[] {
  return endpoints.length === 0 ? endpoints : [...Array<string>(slotsFor(endpoints.length)).fill(""), ...endpoints];
}

/** The chain that a packet from outside some source ranges does not come back from. Name and content depend on the ranges alone. */
export function sourcesChain(ranges: readonly string[], { ip, isCounting }: Words): ChainObject {
  return chain(`from-${digest(ranges.join(" "))}`, () => [
    ...ranges.map((range): ChainRule => [match(payload(ip, "saddr"), prefixOf(range)), { return: null }]),
    [isCounting ? goTo(OUTSIDE_CHAIN) : DROP],
  ]);
}

const DROP: NftVerdict = { drop: null };

/** A range of addresses in a rule. */
export function prefixOf(cidr: string): NftExpression {
  const [addr = "", len] = cidr.split("/");
  return len === undefined ? addr : { prefix: { addr, len: Number(len) } };
}

/** What matches an origin; nothing matches every packet. `outsideSourceRanges` is a jump that drops. */
function originMatch(origin: Origin, destination: Destination, { detector }: NodeContext, words: Words): ChainRule {
  const { ip } = words;
  switch (origin) {
    case "anyone":
      return [];
    case "thisHost":
      return [match({ fib: { result: "type", flags: ["saddr"] } }, "local")];
    case "outsideSourceRanges":
      return [{ jump: { target: sourcesChain(destination.sourceRanges ?? [], words).key } }];
    case "localPod":
    case "offCluster": {
      const op = origin === "offCluster" ? "!=" : "==";
      if (detector === undefined) return [];
      if (detector.by === "cidr") return [match(payload(ip, "saddr"), prefixOf(detector.cidrs[0] ?? ""), op)];
      const name = detector.by === "interface" ? interfaceName(detector.name) : interfaceName(detector.prefix, "*");
      return [match(meta("iifname"), name, op)];
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

/** The verdict of one rule. */
function ruleVerdict({ to }: Rule, targets: PickTargets, { isCounting }: Words): NftVerdict {
  if (to === "drop") return isCounting ? goTo(DISCARD_CHAIN) : DROP;
  return goTo(to === "reject" ? REFUSE_CHAIN : targets[to]);
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
    return { verdict: printRule([ruleVerdict(only, targets, words)]), chain: undefined };
  const name = rules.map((rule) => ruleName(rule, destination, targets, words)).join(".");
  const chains = sharedChains(node, words);
  let found = chains.get(name);
  if (found === undefined) {
    if (chains.size >= SHARED_MAX) chains.clear();
    const make = (): readonly ChainRule[] => rules.map((rule) => ruleOf(rule, destination, targets, node, words));
    chains.set(name, (found = chain(name, make)));
  }
  return { verdict: `goto ${name}`, chain: found };
}

function ruleOf(rule: Rule, destination: Destination, targets: PickTargets, node: NodeContext, words: Words): ChainRule {
  const origin = originMatch(rule.from, destination, node, words);
  // The sources chain drops by itself; its jump comes back for allowed sources.
  if (rule.from === "outsideSourceRanges") return origin;
  const mark: readonly NftRuleStatement[] = rule.masquerade ? [setMark({ "|": [meta("mark"), 2 ** node.settings.masqueradeBit] })] : [];
  return [...origin, ...mark, ruleVerdict(rule, targets, words)];
}

/** Chains that many rows share, by their names, which say all that is in them on one node: making each for ten thousand rows costs more than all else. */
const chainsOfNodes = new WeakMap<NodeContext, Map<Words, Map<string, ChainObject>>>();
/** Those with source ranges or affinity come and go with their rows. */
const SHARED_MAX = 1_000;

function sharedChains(node: NodeContext, words: Words): Map<string, ChainObject> {
  let ofNode = chainsOfNodes.get(node);
  if (ofNode === undefined) chainsOfNodes.set(node, (ofNode = new Map<Words, Map<string, ChainObject>>()));
  let found = ofNode.get(words);
  if (found === undefined) ofNode.set(words, (found = new Map<string, ChainObject>()));
  return found;
}

function ruleName(rule: Rule, destination: Destination, targets: PickTargets, words: Words): string {
  if (rule.from === "outsideSourceRanges") return sourcesChain(destination.sourceRanges ?? [], words).key;
  const target = rule.to === "drop" ? "drop" : rule.to === "reject" ? REFUSE_CHAIN : targets[rule.to];
  return `${ORIGIN_NAMES[rule.from]}${rule.masquerade ? "masq-" : ""}${target}`;
}

/** A row with affinity, as its rules have it. */
export interface AffineRow {
  readonly key: string;
  /** As nft says it. */
  readonly protocol: string;
  readonly seconds: number;
}

/** An endpoint of a row with affinity; `id` is its number among the row's. */
export interface AffineEndpoint {
  readonly ip: string;
  readonly port: number;
  readonly id: number;
}

/**
 * Number the endpoints of a row with affinity, each by a digest of itself: the row's clients are remembered by these numbers. Pure.
 *
 * Edges: where two have one digest the second one gets the next number that is free.
 */
export function numbered(endpoints: readonly Omit<AffineEndpoint, "id">[]): readonly AffineEndpoint[] {
  const taken = new Set<number>();
  return endpoints.map(({ ip, port }) => {
    let { high } = fingerprint(hostPort(ip, port));
    while (taken.has(FIRST_ID + (high % FIRST_ID))) high += 1;
    const id = FIRST_ID + (high % FIRST_ID);
    taken.add(id);
    return { ip, port, id };
  });
}

/** Where the number of a client's endpoint is while the packet is decided: 32 bits that no rule sees, and that routing sets anew for what is forwarded. */
export const SCRATCH: NftExpression = meta("priority");

/** The chain that remembers a client's endpoint and sends it there. Where the row's map of clients is full, the client is sent there all the same. */
export function endpointChain(row: AffineRow, { ip: addr, port, id }: AffineEndpoint, { ip: family }: Words): ChainObject {
  const client = payload(family, "saddr");
  return chain(`ep-${fingerprint(`${row.key} ${hostPort(addr, port)}`).hex}`, () => [
    [
      { mangle: { key: SCRATCH, value: 0 } },
      { map: { op: "update", elem: { elem: { val: client, timeout: row.seconds } }, data: id, map: `@${clientsMap(row.key)}` } },
    ],
    [match(meta("l4proto"), row.protocol), { dnat: { family, addr, port } }],
  ]);
}

/**
 * The chain that sends a client where it was sent before, and a new one to a random endpoint of the pool.
 *
 * Shape: `name` names by {@link servingMap} the map of the pool's `count` endpoints, by their numbers and by their places. A client's endpoint counts while
 * its number is there, so nothing has to be done to clients when an endpoint goes. A client that comes then is forgotten first: an entry that is there
 * keeps its number.
 */
export function affinityChain(name: string, { key }: AffineRow, count: number, words: Words): ChainObject {
  return chain(name, () => {
    const client = payload(words.ip, "saddr");
    const clients = `@${clientsMap(key)}`;
    const serve = vmap(SCRATCH, `@${servingMap(name)}`);
    // nft wants data; nobody reads it.
    const forget: NftRuleStatement = { map: { op: "delete", elem: client, data: SCRATCH, map: clients } };
    return counted("counted-connections", words, [
      [{ mangle: { key: SCRATCH, value: { map: { key: client, data: clients } } } }, serve],
      [forget, { mangle: { key: SCRATCH, value: numgen(count, FIRST_PLACE) } }, serve],
    ]);
  });
}
