import { MISPLACED, placeOf, rulesOf } from "./objects.ts";
import type { ChainObject, TableName } from "./objects.ts";
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
