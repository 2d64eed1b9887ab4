import { placeOf, rulesOf } from "./objects.ts";
import type { ChainObject, TableName } from "./objects.ts";

/** What is done to one table: all of it takes effect together or not at all. */
export interface Section {
  readonly table: TableName;
  /** Chains that weren't there, or had no rules, those that others jump to first. */
  readonly fresh: readonly ChainObject[];
  /** Lines that make or empty other chains. */
  readonly declared: readonly string[];
  /** Lines that add and delete rules. */
  readonly lines: readonly string[];
  /** Chains to be emptied and, at the end, deleted, those that jump to others first: nothing else of ours jumps to them by then. */
  readonly dead: readonly ChainObject[];
  /** Rules it writes. */
  readonly written: number;
  /** By how many rules the table grows. */
  readonly growth: number;
}

/** The input of one call, as `iptables-restore` takes it; `withDeletions` false leaves dead chains empty. */
export function restoreInput(sections: readonly Section[], withDeletions: boolean = true): string {
  return sections.map((section) => [...sectionLines(section, withDeletions), ""].join("\n")).join("");
}

function sectionLines({ table, fresh, declared, lines, dead }: Section, withDeletions: boolean): readonly string[] {
  const deadNames = dead.map((object) => placeOf(object).chain);
  return [
    `*${table}`,
    ...declarationsOf(fresh),
    ...deadNames.map(declaration),
    ...declared,
    ...fresh.flatMap(ruleLines),
    ...lines,
    ...(withDeletions ? deadNames.map((name) => `-X ${name}`) : []),
    "COMMIT",
  ];
}

/**
 * The lines that make chains, by falling names: the legacy tool keeps chains sorted, and looks for the place of a new one from the head of a part of its list.
 * @source iptables 1.8.9 libiptc/libiptc.c iptc_insert_chain
 */
function declarationsOf(chains: readonly ChainObject[]): readonly string[] {
  const names = chains.map((object) => placeOf(object).chain);
  return names.toSorted().toReversed().map(declaration);
}

/** The line that makes a chain, or empties one. */
export function declaration(chain: string): string {
  return `:${chain} - [0:0]`;
}

/** The lines that add a chain's rules. */
export function ruleLines(object: ChainObject): readonly string[] {
  const { chain } = placeOf(object);
  return rulesOf(object.value).map((rule) => `-A ${chain} ${rule}`);
}

const TABLES: readonly TableName[] = ["nat", "filter", "mangle"];

/** A section that does nothing but what `part` says. */
export function sectionOf(table: TableName, part: Partial<Section>): Section {
  return { fresh: [], declared: [], lines: [], dead: [], written: 0, growth: 0, ...part, table };
}

/** Sections that delete chains, which may be of several tables, and do nothing else. */
export function deletionsOf(dead: readonly ChainObject[]): readonly Section[] {
  return TABLES.flatMap((table) => {
    const here = dead.filter((object) => placeOf(object).table === table);
    return here.length === 0 ? [] : [sectionOf(table, { dead: here })];
  });
}
