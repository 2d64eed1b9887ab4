import type { NftPartKind, NftRuleStatement, NftStatement } from "@turnout/host/nft-statement";
import type { Chain, Element, NftSet, Ruleset, Table } from "@turnout/fakes/nft";
import { TABLE } from "../names.ts";

/**
 * Choose one change that another program may make to our tables, as a transaction that works; undefined when there are none.
 *
 * `random` in [0, 1) chooses.
 */
export function tamperWith({ tables }: Ruleset, random: () => number): readonly NftStatement[] | undefined {
  const table = pick(tables.values(), random, ({ name }) => name === TABLE);
  if (table === undefined) return undefined;
  // Larger ones are rarer.
  const tampering = random() < 0.04 ? pick(LARGE_TAMPERINGS, random) : pick(TAMPERINGS, random);
  return tampering?.(table, random) ?? addChain(table, random);
}

type Tampering = (table: Table, random: () => number) => readonly NftStatement[] | undefined;

function pick<T>(from: Iterable<T>, random: () => number, isChosen: (one: T) => boolean = () => true): T | undefined {
  const chosen = [...from].filter(isChosen);
  return chosen[Math.floor(random() * chosen.length)];
}

/** A set that the backend fills, with an element of it; what packets taught a dynamic set is no one's. */
function anElement(table: Table, random: () => number): { readonly set: NftSet; readonly element: Element } | undefined {
  const set = pick(table.sets.values(), random, ({ elements, flags }) => elements.size > 0 && !flags.includes("dynamic"));
  const element = set && pick(set.elements.values(), random);
  return set && element && { set, element };
}

const PARTS: Readonly<Record<string, NftPartKind>> = {
  ipv4_addr: "address",
  ipv6_addr: "address",
  inet_proto: "protocol",
  inet_service: "port",
};

function write(verb: "add" | "delete", table: Table, set: NftSet, key: string, value = ""): NftStatement {
  const parts = set.types.map((type) => PARTS[type] ?? "number");
  return { verb, family: table.family, table: table.name, set: set.name, parts, elements: [{ key, value, comment: "" }] };
}

const deleteElement: Tampering = (table, random) => {
  const found = anElement(table, random);
  return found && [write("delete", table, found.set, found.element.key)];
};

const changeElement: Tampering = (table, random) => {
  const { set, element } = anElement(table, random) ?? {};
  if (set?.data === undefined || element === undefined) return undefined;
  const other = pick(set.elements.values(), random)?.value;
  const value = other === undefined || random() < 0.3 ? externalValue(set) : other;
  return [write("delete", table, set, element.key), write("add", table, set, element.key, value)];
};

const addElement: Tampering = (table, random) => {
  const set = pick(table.sets.values(), random, ({ flags }) => !flags.includes("dynamic"));
  const key = set?.types.map((type) => externalPart(type, random)).join(" . ") ?? "";
  return set === undefined || set.elements.has(key) ? undefined : [write("add", table, set, key, externalValue(set))];
};

interface Place {
  readonly family: "ip" | "ip6";
  readonly table: string;
}

const inTable = ({ family, name: table }: Table): Place => ({ family, table });
const named = (table: Table, { name }: { readonly name: string }): Place & { readonly name: string } => ({ ...inTable(table), name });
const setOrMap = (table: Table, set: NftSet): { readonly set: ReturnType<typeof named> } | { readonly map: ReturnType<typeof named> } =>
  set.data === undefined ? { set: named(table, set) } : { map: named(table, set) };
const hasRules = ({ rules }: Chain): boolean => rules.length > 0;
const isIdle = ({ uses }: Chain | NftSet): boolean => uses === 0;

function aRule(table: Table, random: () => number): (Place & { readonly chain: string; readonly handle: number }) | undefined {
  const chain = pick(table.chains.values(), random, hasRules);
  const rule = chain && pick(chain.rules, random);
  return rule && { ...inTable(table), chain: chain.name, handle: rule.handle };
}

const deleteRule: Tampering = (table, random) => {
  const rule = aRule(table, random);
  return rule && [{ delete: { rule } }];
};

const [accept, drop, back, counter]: readonly NftRuleStatement[] = [{ accept: null }, { drop: null }, { return: null }, { counter: null }];

const replaceRule: Tampering = (table, random) => {
  const rule = aRule(table, random);
  const statement = pick([accept, drop, counter], random);
  return rule && statement && [{ replace: { rule: { ...rule, expr: [statement] } } }];
};

const addRule: Tampering = (table, random) => {
  const chain = pick(table.chains.values(), random, ({ name }) => !name.startsWith("layout-"));
  const isFirst = random() < 0.5;
  const statement = pick([drop, accept, back, counter], random);
  if (chain === undefined || statement === undefined) return undefined;
  const rule = { ...inTable(table), chain: chain.name, expr: [statement], comment: "somebody's" };
  return [isFirst ? { insert: { rule } } : { add: { rule } }];
};

const dropByPolicy: Tampering = (table, random) => {
  const chain = pick(table.chains.values(), random, ({ hook }) => hook?.type === "filter");
  if (chain?.hook === undefined) return undefined;
  const { type, at: hook, priority: prio } = chain.hook;
  return [{ add: { chain: { ...named(table, chain), type, hook, prio, policy: "drop" } } }];
};

/** A chain that only the kernel called in is made anew, and not called in. */
const unhookChain: Tampering = (table, random) => {
  const found = pick(table.chains.values(), random, (chain) => chain.hook !== undefined && isIdle(chain));
  const chain = found && named(table, found);
  return chain && [{ delete: { chain } }, { add: { chain } }];
};

const addChain: Tampering = (table, random) => {
  const chain = named(table, { name: `foreign-${Math.floor(random() * 1_000_000)}` });
  return [{ add: { chain } }, { add: { rule: { ...inTable(table), chain: chain.name, expr: [{ drop: null }] } } }];
};

const deleteTable: Tampering = ({ family, name }) => [{ delete: { table: { family, name } } }];
const flushTable: Tampering = ({ family, name }) => [{ flush: { table: { family, name } } }];
const flushChain: Tampering = (table, random) => {
  const chain = pick(table.chains.values(), random, hasRules);
  return chain && [{ flush: { chain: named(table, chain) } }];
};
const flushSet: Tampering = (table, random) => {
  const set = pick(table.sets.values(), random);
  return set && [{ flush: setOrMap(table, set) }];
};

// Only what nothing refers to can be deleted: base chains, idle ones, the layout's; sets that no rule asks at present.
const deleteChain: Tampering = (table, random) => {
  const chain = pick(table.chains.values(), random, isIdle);
  return chain && [{ delete: { chain: named(table, chain) } }];
};
const deleteSet: Tampering = (table, random) => {
  const set = pick(table.sets.values(), random, isIdle);
  return set && [{ delete: setOrMap(table, set) }];
};

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
