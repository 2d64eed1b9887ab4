import type { KernelObject, Put } from "@turnout/core/backend";
import { MISPLACED, placeOf, rulesOf } from "./objects.ts";
import type { ChainObject, RulesObject, TableName } from "./objects.ts";
import { declaration, ruleLines } from "./section.ts";
import type { Section } from "./section.ts";

/**
 * Collects what is done to one table, in an order in which nothing jumps to a chain that isn't there.
 *
 * `chainOrder`: how names of chains begin, such that a chain jumps only to chains that come before it here, or to none of these.
 */
export class SectionWriter {
  readonly #table: TableName;
  readonly #chainOrder: readonly string[];
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

  constructor(table: TableName, chainOrder: readonly string[]) {
    this.#table = table;
    this.#chainOrder = chainOrder;
  }

  /** Make a chain that isn't there at all; should somebody have made it meanwhile, the change fails and his rules stay. */
  createChain(name: string): void {
    this.#declared.push(`-N ${name}`);
  }

  /** Make a chain, or replace its rules; `before` is the value it has (undefined: it isn't there; "": it has none). */
  writeChain(object: ChainObject, before: string | undefined): void {
    const count = rulesOf(object.value).length;
    if (before === undefined || before === "") {
      this.#fresh.push(object);
      this.#count(count, 0);
    } else {
      this.#declared.push(declaration(placeOf(object).chain));
      this.#changed.push(...ruleLines(object));
      this.#count(count, rulesOf(before).length);
    }
  }

  /** Make a shared chain, or give an existing one another tail; `before` is the value it has (undefined: it isn't there). */
  writeShared(key: string, value: string, before: string | undefined): void {
    const { chain } = placeOf({ key });
    const tail = rulesOf(value);
    const old = rulesOf(before ?? "").filter((rule) => rule !== MISPLACED);
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

  /** Put a rule at the head of its chain. */
  insertRule(key: string): void {
    const { chain, rule } = placeOf({ key });
    this.#inserts.push(`-I ${chain} ${rule}`);
    this.#count(1, 0);
  }

  /** Delete a rule, as often as it is there. */
  deleteRule(key: string, copies: number): void {
    const { chain, rule } = placeOf({ key });
    for (let copy = 0; copy < copies; copy++) this.#deletes.push(`-D ${chain} ${rule}`);
    this.#growth -= copies;
  }

  /** Empty a chain, and delete it when nothing in this section leads to it any more. */
  dropChain(object: ChainObject): void {
    this.#dead.push(object);
    this.#growth -= rulesOf(object.value).length;
  }

  /** The section; none when nothing is to be done. */
  finish(): readonly Section[] {
    const lines = [...this.#changed, ...this.#first, ...this.#tails, ...this.#inserts, ...this.#deletes];
    if (this.#fresh.length + this.#declared.length + lines.length + this.#dead.length === 0) return [];
    const fresh = this.#fresh.toSorted((a, b) => this.#rankOf(a) - this.#rankOf(b));
    const dead = this.#dead.toSorted((a, b) => this.#rankOf(b) - this.#rankOf(a));
    return [{ table: this.#table, fresh, declared: this.#declared, lines, dead, written: this.#written, growth: this.#growth }];
  }

  #rankOf(object: ChainObject): number {
    const { chain } = placeOf(object);
    return this.#chainOrder.findIndex((prefix) => chain.startsWith(prefix)) + 1;
  }

  #count(written: number, replaced: number): void {
    this.#written += written;
    this.#growth += written - replaced;
  }
}

/** A writer for each table. */
export type SectionWriters = Readonly<Record<TableName, SectionWriter>>;

/** Make a writer for each table; see {@link SectionWriter}. */
export function sectionWriters(chainOrder: readonly string[]): SectionWriters {
  const writer = (table: TableName): SectionWriter => new SectionWriter(table, chainOrder);
  return { filter: writer("filter"), mangle: writer("mangle"), nat: writer("nat") };
}

/** Write a difference of rules: what comes, and what goes. Single rules for which `isEarly` holds go with what comes. */
export function writeRules(
  { put, remove }: { readonly put: readonly Put<KernelObject>[]; readonly remove: readonly KernelObject[] },
  { coming, going }: { readonly coming: SectionWriters; readonly going: SectionWriters },
  isEarly: (rule: RulesObject) => boolean = () => false,
): void {
  const fresh = new Set(put.flatMap(({ before, after }) => (after.kind === "shared" && before === undefined ? [after.key] : [])));
  const gone = new Set(remove.flatMap(({ kind, key }) => (kind === "shared" ? [key] : [])));
  for (const object of remove.filter(isRules)) {
    const { table, chain } = placeOf(object);
    if (object.kind === "chain" || object.kind === "shared") going[table].dropChain({ ...object, kind: "chain" });
    else if (object.kind === "jumps") going[table].writeJumps(chain, [], rulesOf(object.value));
    else if (!gone.has(`${table} ${chain}`)) (isEarly(object) ? coming : going)[table].deleteRule(object.key, object.value);
  }
  for (const { before, after } of put) {
    if (!isRules(after)) continue;
    const { table, chain, rule } = placeOf(after);
    const writer = coming[table];
    const old = typeof before?.value === "string" ? before.value : undefined;
    if (after.kind === "chain") writer.writeChain(after, old);
    else if (after.kind === "shared") writer.writeShared(after.key, after.value, old);
    else if (after.kind === "jumps") writer.writeJumps(chain, rulesOf(after.value), rulesOf(old ?? ""));
    else if (typeof before?.value === "number") writer.deleteRule(after.key, before.value - 1);
    else if (fresh.has(`${table} ${chain}`)) writer.appendFirst(chain, rule);
    else writer.insertRule(after.key);
  }
}

function isRules(object: KernelObject): object is RulesObject {
  return object.kind === "chain" || object.kind === "rule" || object.kind === "shared" || object.kind === "jumps";
}
