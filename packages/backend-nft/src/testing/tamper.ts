import { verdictJson } from "@turnout/host/testing/nft";
import type { Element, NftSet, Ruleset, Table } from "@turnout/host/testing/nft";
import { TABLE } from "../names.ts";

/**
 * Think of one thing a foreign hand may do to our tables, as an nft command that works; undefined when there are none.
 *
 * `random` in [0, 1) chooses.
 */
export function tamperWith({ tables }: Ruleset, random: () => number): string | undefined {
  const own = [...tables.values()].filter(({ name }) => name === TABLE);
  const table = pick(own, random);
  if (table === undefined) return undefined;
  const tamperings = [
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
  // Larger ones are rarer.
  const tampering = random() < 0.04 ? pick(LARGE_TAMPERINGS, random) : pick(tamperings, random);
  return tampering?.(table, random) ?? addChain(table, random);
}

type Tampering = (table: Table, random: () => number) => string | undefined;

function pick<T>(from: readonly T[], random: () => number): T | undefined {
  return from[Math.floor(random() * from.length)];
}

function placeOf({ family, name }: Table): string {
  return `${family} ${name}`;
}

/** A set that the backend fills, with an element of it; what packets taught a dynamic set is nobody's. */
function anElement(table: Table, random: () => number): { readonly set: NftSet; readonly element: Element } | undefined {
  const sets = [...table.sets.values()].filter(({ elements, flags }) => elements.size > 0 && !flags.includes("dynamic"));
  const set = pick(sets, random);
  const element = set === undefined ? undefined : pick([...set.elements.values()], random);
  return set === undefined || element === undefined ? undefined : { set, element };
}

const deleteElement: Tampering = (table, random) => {
  const found = anElement(table, random);
  return found && `delete element ${placeOf(table)} ${found.set.name} { ${keyText(found.set, found.element.key)} }`;
};

const changeElement: Tampering = (table, random) => {
  const found = anElement(table, random);
  if (found?.element.data === undefined) return undefined;
  const { set, element } = found;
  const other = pick([...set.elements.values()], random)?.data;
  const data = other === undefined || random() < 0.3 ? externalData(set) : other;
  const key = keyText(set, element.key);
  const head = `element ${placeOf(table)} ${set.name} {`;
  return `delete ${head} ${key} }; add ${head} ${key} : ${dataText(data)} }`;
};

const addElement: Tampering = (table, random) => {
  const set = pick(
    [...table.sets.values()].filter(({ flags }) => !flags.includes("dynamic")),
    random,
  );
  if (set === undefined) return undefined;
  const key = set.types.map((type) => externalPart(type.name, random)).join(" . ");
  if (set.elements.has(key)) return undefined;
  const data = set.data === undefined ? "" : ` : ${dataText(externalData(set))}`;
  return `add element ${placeOf(table)} ${set.name} { ${keyText(set, key)}${data} }`;
};

const deleteRule: Tampering = (table, random) => {
  const chain = pick(chainsWithRules(table), random);
  const rule = chain && pick(chain.rules, random);
  return rule && `delete rule ${placeOf(table)} ${chain.name} handle ${rule.handle}`;
};

const replaceRule: Tampering = (table, random) => {
  const chain = pick(chainsWithRules(table), random);
  const rule = chain && pick(chain.rules, random);
  return rule && `replace rule ${placeOf(table)} ${chain.name} handle ${rule.handle} ${pick(["accept", "drop", "counter"], random)}`;
};

const addRule: Tampering = (table, random) => {
  const chain = pick(
    [...table.chains.values()].filter(({ name }) => !name.startsWith("layout-")),
    random,
  );
  const verb = pick(["add", "insert"], random);
  return (
    chain && `${verb} rule ${placeOf(table)} ${chain.name} ${pick(["drop", "accept", "return", "counter"], random)} comment "somebody's"`
  );
};

const dropByPolicy: Tampering = (table, random) => {
  const chain = pick(
    [...table.chains.values()].filter(({ base }) => base?.type === "filter"),
    random,
  );
  return (
    chain?.base &&
    `add chain ${placeOf(table)} ${chain.name} { type filter hook ${chain.base.hook} priority ${chain.base.priority}; policy drop; }`
  );
};
/** A chain that nothing called in but the kernel is made anew, for nobody. */
const unhookChain: Tampering = (table, random) => {
  const chain = pick(
    [...table.chains.values()].filter(({ base, uses }) => base !== undefined && uses === 0),
    random,
  );
  return chain && `delete chain ${placeOf(table)} ${chain.name}; add chain ${placeOf(table)} ${chain.name}`;
};

const addChain: Tampering = (table, random) => {
  const name = `foreign-${Math.floor(random() * 1_000_000)}`;
  return `add chain ${placeOf(table)} ${name}; add rule ${placeOf(table)} ${name} drop`;
};

const deleteTable: Tampering = (table) => `delete table ${placeOf(table)}`;
const flushTable: Tampering = (table) => `flush table ${placeOf(table)}`;
const flushChain: Tampering = (table, random) => {
  const chain = pick(chainsWithRules(table), random);
  return chain && `flush chain ${placeOf(table)} ${chain.name}`;
};
const flushSet: Tampering = (table, random) => {
  const set = pick([...table.sets.values()], random);
  return set && `flush ${set.data === undefined ? "set" : "map"} ${placeOf(table)} ${set.name}`;
};

// Only what nothing refers to can be deleted: base chains, idle ones, the layout's; sets that no rule asks at present.
const deleteChain: Tampering = (table, random) => {
  const chain = pick(
    [...table.chains.values()].filter(({ uses }) => uses === 0),
    random,
  );
  return chain && `delete chain ${placeOf(table)} ${chain.name}`;
};
const deleteSet: Tampering = (table, random) => {
  const set = pick(
    [...table.sets.values()].filter(({ uses }) => uses === 0),
    random,
  );
  return set && `delete ${set.data === undefined ? "set" : "map"} ${placeOf(table)} ${set.name}`;
};

function chainsWithRules(table: Table): readonly (typeof table.chains extends Map<string, infer C> ? C : never)[] {
  return [...table.chains.values()].filter(({ rules }) => rules.length > 0);
}

function keyText({ types }: NftSet, key: string): string {
  return key
    .split(" . ")
    .map((part, index) => (types[index]?.name === "ifname" ? `"${part}"` : part))
    .join(" . ");
}

function dataText(data: NonNullable<Element["data"]>): string {
  if (typeof data === "string") return data;
  const [word = "", target] = Object.entries(verdictJson(data) as Readonly<Record<string, { readonly target: string } | null>>)[0] ?? [];
  return target ? `${word} ${target.target}` : word;
}

function externalData({ data }: NftSet): NonNullable<Element["data"]> {
  if (data === undefined || data === "verdict") return { verdict: "drop" };
  return data.map((type) => externalPart(type.name, () => 0)).join(" . ");
}

function externalPart(type: string, random: () => number): string {
  const number = Math.floor(random() * 250);
  if (type === "ipv4_addr") return `192.0.2.${number}`;
  if (type === "ipv6_addr") return `2001:db8::${(number + 1).toString(16)}`;
  return type === "inet_proto" ? "6" : String(number + 1);
}

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
