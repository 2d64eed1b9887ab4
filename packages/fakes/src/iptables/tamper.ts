import { referencesTo, sortedChains } from "./tables.ts";
import type { Chain, Chains, RuleSet } from "./tables.ts";
import type { TableName } from "./table-names.ts";

/** Something a foreign hand does: an input of `iptables-restore --noflush` for one variant and family. */
export interface Tampering {
  readonly rules: RuleSet;
  readonly input: string;
}

/** A rule of ours, by where it stands. */
interface RulePosition {
  readonly chain: Chain;
  /** From 1. */
  readonly number: number;
  readonly text: string;
}

/** Where something is done. */
interface Scene {
  readonly chains: Chains;
  readonly own: readonly Chain[];
  readonly rules: readonly RulePosition[];
  readonly random: () => number;
  isOwnChain(name: string): boolean;
}

/** Lines of a table's input; undefined where there is nothing to do it to. */
type Act = (scene: Scene) => readonly string[] | undefined;

/**
 * Think of one thing that another program may do to a backend's chains, as an input the tool takes; undefined when there is nothing.
 *
 * `random` in [0, 1) chooses.
 */
export function tamperWith(sets: readonly RuleSet[], random: () => number, isOwnChain: (name: string) => boolean): Tampering | undefined {
  const tables = sets.flatMap((rules) =>
    [...rules.tables].flatMap(([table, chains]): readonly { rules: RuleSet; table: TableName; scene: Scene }[] => {
      const own = sortedChains(chains).filter(({ name }) => isOwnChain(name));
      return own.length === 0 ? [] : [{ rules, table, scene: { chains, own, rules: ownRules(chains, isOwnChain), random, isOwnChain } }];
    }),
  );
  const found = pick(tables, random);
  if (found === undefined) return undefined;
  // Larger ones are rarer.
  const act = random() < 0.06 ? pick(LARGE_ACTS, random) : pick(ACTS, random);
  const lines = act?.(found.scene) ?? addRule(found.scene);
  return lines && { rules: found.rules, input: `*${found.table}\n${lines.join("\n")}\nCOMMIT\n` };
}

function pick<T>(from: readonly T[], random: () => number): T | undefined {
  return from[Math.floor(random() * from.length)];
}

function ownRules(chains: Chains, isOwnChain: (name: string) => boolean): readonly RulePosition[] {
  return [...chains.values()].flatMap((chain) =>
    chain.rules.flatMap((rule, index) => {
      const isOwn = isOwnChain(chain.name) || (rule.chain !== undefined && isOwnChain(rule.chain));
      return isOwn ? [{ chain, number: index + 1, text: rule.text }] : [];
    }),
  );
}

const deleteRule: Act = ({ rules, random }) => {
  const place = pick(rules, random);
  return place && [`-D ${place.chain.name} ${place.number}`];
};

const deleteJump: Act = ({ rules, random }) => {
  const place = pick(
    rules.filter(({ chain }) => chain.policy !== undefined),
    random,
  );
  return place && [`-D ${place.chain.name} ${place.number}`];
};

const changeRule: Act = ({ rules, random }) => {
  const place = pick(
    rules.filter(({ chain }) => chain.policy === undefined),
    random,
  );
  const other = random() < 0.5 ? "-j RETURN" : pick(rules, random)?.text;
  // A rule that leads back to its own chain is refused.
  const isLoop = other === undefined || /-[jg] KUBE/.test(other);
  return place && [`-R ${place.chain.name} ${place.number} ${isLoop ? "-j ACCEPT" : other}`];
};

const doubleRule: Act = ({ rules, random }) => {
  const place = pick(rules, random);
  return place && [`-${random() < 0.5 ? "A" : "I"} ${place.chain.name} ${place.text}`];
};

const moveRule: Act = ({ rules, random }) => {
  const place = pick(
    rules.filter(({ chain }) => chain.policy === undefined && chain.rules.length > 1),
    random,
  );
  if (place === undefined) return undefined;
  const { chain, number, text } = place;
  return [`-D ${chain.name} ${number}`, number === 1 ? `-A ${chain.name} ${text}` : `-I ${chain.name} ${text}`];
};

const addRule: Act = ({ own, random }) => {
  const chain = pick(own, random);
  const verb = pick(["A", "I"], random);
  return chain && [`-${verb} ${chain.name} -m comment --comment "somebody's" -j ${pick(["ACCEPT", "RETURN"], random)}`];
};

/** A chain with the name of one endpoint's, where the backend has such. */
const addChain: Act = ({ chains, random, isOwnChain }) => {
  const name = `KUBE-SEP-${String(Math.floor(random() * 1_000_000)).padStart(16, "A")}`;
  return chains.has(name) || !isOwnChain(name) ? undefined : [`:${name} - [0:0]`, `-A ${name} -j RETURN`];
};

const flushChain: Act = ({ own, random }) => {
  const chain = pick(own, random);
  return chain && [`-F ${chain.name}`];
};

const deleteChain: Act = ({ chains, own, random }) => {
  const chain = pick(
    own.filter(({ name }) => referencesTo(chains, name) === 0),
    random,
  );
  return chain && [`-F ${chain.name}`, `-X ${chain.name}`];
};

/** Everything goes with a table that is flushed; the others, though not the proxy, have put theirs back already. */
const flushTable: Act = ({ own, rules, isOwnChain }) => {
  const jumps = rules.filter(({ chain }) => chain.policy !== undefined || !isOwnChain(chain.name)).toReversed();
  return [
    ...jumps.map(({ chain, number }) => `-D ${chain.name} ${number}`),
    ...own.map(({ name }) => `-F ${name}`),
    ...own.map(({ name }) => `-X ${name}`),
  ];
};

const ACTS: readonly Act[] = [deleteRule, deleteRule, deleteJump, changeRule, changeRule, doubleRule, moveRule, addRule, addChain];
const LARGE_ACTS: readonly Act[] = [flushTable, flushChain, deleteChain];
