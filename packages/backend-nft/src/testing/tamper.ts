import type { NftElementWrite, NftPartKind, NftRuleStatement, NftStatement, NftVerdict } from "@turnout/host/nft-statement";
import type { Chain, Element, NftSet, Rule, Ruleset, Table } from "@turnout/fakes/nft";
import { TABLE } from "../names.ts";

/**
 * Choose one change that another program may make to our tables, as a transaction that works; undefined when there are none.
 *
 * `random` in [0, 1) chooses.
 */
export function tamperWith({ tables }: Ruleset, random: () => number): readonly NftStatement[] | undefined {
  const own = [...tables.values()].filter(({ name }) => name === TABLE);
  const table = pick(own, random);
  if (table === undefined) return undefined;
  // Larger ones are rarer.
  const tampering = random() < 0.04 ? pick(LARGE_TAMPERINGS, random) : pick(TAMPERINGS, random);
  return tampering?.(table, random) ?? addChain(table, random);
}

type Tampering = (table: Table, random: () => number) => readonly NftStatement[] | undefined;

function pick<T>(from: readonly T[], random: () => number): T | undefined {
  return from[Math.floor(random() * from.length)];
}

/** A set that the backend fills, with an element of it; what packets taught a dynamic set is no one's. */
function anElement(table: Table, random: () => number): { readonly set: NftSet; readonly element: Element } | undefined {
  const sets = [...table.sets.values()].filter(({ elements, flags }) => elements.size > 0 && !flags.includes("dynamic"));
  const set = pick(sets, random);
  const element = set === undefined ? undefined : pick([...set.elements.values()], random);
  return set === undefined || element === undefined ? undefined : { set, element };
}

const PARTS: Readonly<Record<string, NftPartKind>> = {
  ipv4_addr: "address",
  ipv6_addr: "address",
  inet_proto: "protocol",
  inet_service: "port",
};

function write(verb: "add" | "delete", table: Table, set: NftSet, key: string, value = ""): NftStatement {
  const parts = set.types.map((type) => PARTS[type] ?? "number");
  const elements: readonly NftElementWrite[] = [{ key, value, comment: "" }];
  return { verb, family: table.family, table: table.name, set: set.name, parts, elements };
}

const deleteElement: Tampering = (table, random) => {
  const found = anElement(table, random);
  return found && [write("delete", table, found.set, found.element.key)];
};

const changeElement: Tampering = (table, random) => {
  const found = anElement(table, random);
  if (found === undefined || found.set.data === undefined) return undefined;
  const { set, element } = found;
  const other = pick([...set.elements.values()], random)?.value;
  const value = other === undefined || random() < 0.3 ? externalValue(set) : other;
  return [write("delete", table, set, element.key), write("add", table, set, element.key, value)];
};

const addElement: Tampering = (table, random) => {
  const sets = [...table.sets.values()].filter(({ flags }) => !flags.includes("dynamic"));
  const set = pick(sets, random);
  if (set === undefined) return undefined;
  const key = set.types.map((type) => externalPart(type, random)).join(" . ");
  return set.elements.has(key) ? undefined : [write("add", table, set, key, externalValue(set))];
};

function inChain({ family, name }: Table, chain: Chain): { readonly family: "ip" | "ip6"; readonly table: string; readonly chain: string } {
  return { family, table: name, chain: chain.name };
}

function aRule(table: Table, random: () => number): { readonly chain: Chain; readonly rule: Rule } | undefined {
  const chain = pick(chainsWithRules(table), random);
  const rule = chain && pick(chain.rules, random);
  return rule && { chain, rule };
}

const deleteRule: Tampering = (table, random) => {
  const found = aRule(table, random);
  return found && [{ delete: { rule: { ...inChain(table, found.chain), handle: found.rule.handle } } }];
};

const [accept, drop, back, counter]: readonly NftRuleStatement[] = [{ accept: null }, { drop: null }, { return: null }, { counter: null }];

const replaceRule: Tampering = (table, random) => {
  const found = aRule(table, random);
  const statement = pick([accept, drop, counter], random);
  return found && statement && [{ replace: { rule: { ...inChain(table, found.chain), handle: found.rule.handle, expr: [statement] } } }];
};

const addRule: Tampering = (table, random) => {
  const chains = [...table.chains.values()].filter(({ name }) => !name.startsWith("layout-"));
  const chain = pick(chains, random);
  const isFirst = random() < 0.5;
  const statement = pick([drop, accept, back, counter], random);
  if (chain === undefined || statement === undefined) return undefined;
  const rule = { ...inChain(table, chain), expr: [statement], comment: "somebody's" };
  return [isFirst ? { insert: { rule } } : { add: { rule } }];
};

const dropByPolicy: Tampering = (table, random) => {
  const chain = pick(
    [...table.chains.values()].filter(({ hook }) => hook?.type === "filter"),
    random,
  );
  if (chain?.hook === undefined) return undefined;
  const { type, at: hook, priority: prio } = chain.hook;
  return [{ add: { chain: { family: table.family, table: table.name, name: chain.name, type, hook, prio, policy: "drop" } } }];
};

function named(
  { family, name: table }: Table,
  name: string,
): { readonly family: "ip" | "ip6"; readonly table: string; readonly name: string } {
  return { family, table, name };
}

function aChain(table: Table, random: () => number, isChosen: (chain: Chain) => boolean): Chain | undefined {
  return pick([...table.chains.values()].filter(isChosen), random);
}

/** A chain that only the kernel called in is made anew, and not called in. */
const unhookChain: Tampering = (table, random) => {
  const found = aChain(table, random, ({ hook, uses }) => hook !== undefined && uses === 0);
  const chain = found && named(table, found.name);
  return chain && [{ delete: { chain } }, { add: { chain } }];
};

const addChain: Tampering = (table, random) => {
  const chain = named(table, `foreign-${Math.floor(random() * 1_000_000)}`);
  const dropping: NftVerdict = { drop: null };
  return [{ add: { chain } }, { add: { rule: { family: table.family, table: table.name, chain: chain.name, expr: [dropping] } } }];
};

const deleteTable: Tampering = ({ family, name }) => [{ delete: { table: { family, name } } }];
const flushTable: Tampering = ({ family, name }) => [{ flush: { table: { family, name } } }];
const flushChain: Tampering = (table, random) => {
  const chain = pick(chainsWithRules(table), random);
  return chain && [{ flush: { chain: named(table, chain.name) } }];
};
const flushSet: Tampering = (table, random) => {
  const set = pick([...table.sets.values()], random);
  return set && [{ flush: setOrMap(table, set) }];
};

// Only what nothing refers to can be deleted: base chains, idle ones, the layout's; sets that no rule asks at present.
const deleteChain: Tampering = (table, random) => {
  const chain = aChain(table, random, ({ uses }) => uses === 0);
  return chain && [{ delete: { chain: named(table, chain.name) } }];
};
const deleteSet: Tampering = (table, random) => {
  const set = pick(
    [...table.sets.values()].filter(({ uses }) => uses === 0),
    random,
  );
  return set && [{ delete: setOrMap(table, set) }];
};

function setOrMap(
  table: Table,
  { name, data }: NftSet,
): { readonly set: ReturnType<typeof named> } | { readonly map: ReturnType<typeof named> } {
  return data === undefined ? { set: named(table, name) } : { map: named(table, name) };
}

function chainsWithRules(table: Table): readonly Chain[] {
  return [...table.chains.values()].filter(({ rules }) => rules.length > 0);
}

function externalValue({ data }: NftSet): string {
  if (data === undefined) return "";
  return data === "verdict" ? "drop" : data.map((type) => externalPart(type, () => 0)).join(" . ");
}

function externalPart(type: string, random: () => number): string {
  const number = Math.floor(random() * 250);
  if (type === "ipv4_addr") return `192.0.2.${number}`;
  if (type === "ipv6_addr") return `2001:db8::${(number + 1).toString(16)}`;
  return type === "inet_proto" ? "tcp" : String(number + 1);
}

const TAMPERINGS: readonly Tampering[] = [
  deleteElement,
  deleteElement,
  changeElement,
  changeElement,
  addElement,
  deleteRule,
  replaceRule,
  addRule,
  addRule,
  addChain,
];
const LARGE_TAMPERINGS: readonly Tampering[] = [
  deleteTable,
  flushTable,
  flushChain,
  flushSet,
  deleteChain,
  deleteSet,
  dropByPolicy,
  unhookChain,
];
