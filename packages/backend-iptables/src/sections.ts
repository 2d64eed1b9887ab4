import type { TableName } from "./layout.ts";
import { MISPLACED, placeOf, rulesOf } from "./objects.ts";
import type { ChainObject, IptablesObject } from "./objects.ts";

/** What is done to one table: all of it takes effect together or not at all. */
export interface Section {
  readonly table: TableName;
  /** Chains that weren't there, those that others jump to first. */
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
    ...fresh.map((object) => declaration(placeOf(object).chain)),
    ...deadNames.map(declaration),
    ...declared,
    ...fresh.flatMap(ruleLines),
    ...lines,
    ...(withDeletions ? deadNames.map((name) => `-X ${name}`) : []),
    "COMMIT",
  ];
}

/** What makes a chain, or empties one. */
function declaration(chain: string): string {
  return `:${chain} - [0:0]`;
}

function ruleLines(object: ChainObject): readonly string[] {
  const { chain } = placeOf(object);
  return rulesOf(object.value).map((rule) => `-A ${chain} ${rule}`);
}

const TABLES: readonly TableName[] = ["nat", "filter", "mangle"];
const EMPTY: Section = { table: "nat", fresh: [], declared: [], lines: [], dead: [], written: 0, growth: 0 };

function deletionOf(dead: readonly ChainObject[], table: TableName): Section {
  return { ...EMPTY, table, dead };
}

/** Sections that delete chains, which may be of several tables, and do nothing else. */
export function deletionsOf(dead: readonly ChainObject[]): readonly Section[] {
  return TABLES.flatMap((table) => {
    const here = dead.filter((object) => placeOf(object).table === table);
    return here.length === 0 ? [] : [deletionOf(here, table)];
  });
}

/** Chains in one section for the nft variant: the time it takes for a section grows with the square of the chains that this one names. */
const CHAINS_MAX = 200;

/**
 * Cut a large change into more sections: chains that nothing leads to yet ahead of it, chains that nothing leads to any more behind it.
 *
 * Shape: what is in force changes with the sections that were there before, and no other. A change of the usual size stays as it is.
 */
export function cutSections(sections: readonly Section[], chainsMax: number = CHAINS_MAX): readonly Section[] {
  const ahead: Section[] = [];
  const behind: Section[] = [];
  const main = sections.map((section): Section => {
    if (section.table !== "nat") return section;
    const fresh = section.fresh.length > chainsMax ? chunksOf(section.fresh, chainsMax) : [];
    const dead = section.dead.length > chainsMax ? chunksOf(section.dead, chainsMax) : [];
    ahead.push(...fresh.map((chunk): Section => ({ ...EMPTY, fresh: chunk })));
    behind.push(...dead.map((chunk) => deletionOf(chunk, section.table)));
    return { ...section, fresh: fresh.length > 0 ? [] : section.fresh, dead: dead.length > 0 ? [] : section.dead };
  });
  return ahead.length + behind.length === 0 ? sections : [...ahead, ...main, ...behind];
}

function chunksOf(chains: readonly ChainObject[], chainsMax: number): readonly (readonly ChainObject[])[] {
  return Array.from({ length: Math.ceil(chains.length / chainsMax) }, (_, index) =>
    chains.slice(index * chainsMax, (index + 1) * chainsMax),
  );
}

/** A chain jumps only to chains that come before it here, or to none of these. */
const RANKS: readonly string[] = ["KUBE-SEP-", "KUBE-SVL-", "KUBE-SVC-", "KUBE-EXT-", "KUBE-FW-", "KUBE-NODEPORTS", "KUBE-SERVICES"];

function rankOf(object: ChainObject): number {
  const { chain } = placeOf(object);
  return RANKS.findIndex((prefix) => chain.startsWith(prefix)) + 1;
}

/** Collects what is done to one table. */
export class SectionWriter {
  readonly #table: TableName;
  readonly #fresh: ChainObject[] = [];
  readonly #declared: string[] = [];
  readonly #changed: string[] = [];
  /** Rules of shared chains that are new, and behind them their tails, and jumps. */
  readonly #first: string[] = [];
  readonly #tails: string[] = [];
  readonly #inserts: string[] = [];
  readonly #deletes: string[] = [];
  readonly #dead: ChainObject[] = [];
  #written = 0;
  #growth = 0;

  constructor(table: TableName) {
    this.#table = table;
  }

  /** Make a chain that isn't there at all; should somebody have made it meanwhile, the change fails and his rules stay. */
  createChain(name: string): void {
    this.#declared.push(`-N ${name}`);
  }

  /** Make a chain, or replace its rules. */
  writeChain(object: ChainObject, before: IptablesObject | undefined): void {
    const count = rulesOf(object.value).length;
    if (before?.kind === "chain") {
      this.#declared.push(declaration(placeOf(object).chain));
      this.#changed.push(...ruleLines(object));
      this.#count(count, rulesOf(before.value).length);
    } else {
      this.#fresh.push(object);
      this.#count(count, 0);
    }
  }

  /** Make a shared chain, or give an existing one another tail. */
  writeShared(key: string, value: string, before: unknown): void {
    const { chain } = placeOf({ kind: "shared", key, value });
    const tail = rulesOf(value);
    const old = typeof before === "string" ? rulesOf(before).filter((rule) => rule !== MISPLACED) : [];
    if (before === undefined) this.#declared.push(declaration(chain));
    for (const rule of old) this.#tails.push(`-D ${chain} ${rule}`);
    for (const rule of tail) this.#tails.push(`-A ${chain} ${rule}`);
    this.#count(tail.length, old.length);
  }

  /** Add a rule to a shared chain that this section makes. */
  appendFirst(chain: string, rule: string): void {
    this.#first.push(`-A ${chain} ${rule}`);
    this.#count(1, 0);
  }

  /** Put jumps at the head of a chain of the kernel's, in this order, in place of others. */
  writeJumps(chain: string, jumps: readonly string[], old: readonly string[]): void {
    // Deleted first: -D takes the first that is the same, which would be the new one.
    for (const jump of old) this.#tails.push(`-D ${chain} ${jump}`);
    for (const jump of jumps.toReversed()) this.#tails.push(`-I ${chain} ${jump}`);
    this.#count(jumps.length, old.length);
  }

  insertRule(key: string): void {
    const { chain, rule } = placeOf({ kind: "rule", key, value: 1 });
    this.#inserts.push(`-I ${chain} ${rule}`);
    this.#count(1, 0);
  }

  deleteRule(key: string, copies: number): void {
    const { chain, rule } = placeOf({ kind: "rule", key, value: 1 });
    for (let copy = 0; copy < copies; copy++) this.#deletes.push(`-D ${chain} ${rule}`);
    this.#growth -= copies;
  }

  /** Empty a chain, and delete it when nothing in this section leads to it any more. */
  dropChain(object: ChainObject): void {
    this.#dead.push(object);
    this.#growth -= rulesOf(object.value).length;
  }

  /** The section; none when nothing is to be done. */
  take(): readonly Section[] {
    const lines = [...this.#changed, ...this.#first, ...this.#tails, ...this.#inserts, ...this.#deletes];
    if (this.#fresh.length + this.#declared.length + lines.length + this.#dead.length === 0) return [];
    const fresh = this.#fresh.toSorted((a, b) => rankOf(a) - rankOf(b));
    const dead = this.#dead.toSorted((a, b) => rankOf(b) - rankOf(a));
    return [{ table: this.#table, fresh, declared: this.#declared, lines, dead, written: this.#written, growth: this.#growth }];
  }

  #count(written: number, replaced: number): void {
    this.#written += written;
    this.#growth += written - replaced;
  }
}
