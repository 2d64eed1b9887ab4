import { invariant, isEqual, withEqual, type ServicePort } from "@turnout/core";

/** A row as some nodes have it. */
interface Form {
  readonly row: ServicePort;
  /** It has an endpoint on the node that it is for, so no other node has an equal one. */
  readonly isOwn: boolean;
  nodes: number;
}

/** The forms of the rows with one key. */
interface Slot {
  /** Where nodes have the number of their form. */
  readonly index: number;
  /** A form stays at its place; `undefined` where one is gone. */
  readonly forms: (Form | undefined)[];
}

/** A node has the number of its form in two bytes. */
const FORMS_MAX = 65_535;

/** Take over from a row with the same key what is equal. */
function withEqualParts(like: ServicePort | undefined, row: ServicePort): ServicePort {
  if (like === undefined) return row;
  const endpoints = row.endpoints.map((endpoint, at) =>
    isEqual(like.endpoints[at], endpoint) ? (like.endpoints[at] ?? endpoint) : endpoint,
  );
  return withEqual(like, { ...row, endpoints });
}

/**
 * The rows of many nodes in one family: rows that are equal on several nodes are held once.
 *
 * Shape: rows with the same key are *forms*; most nodes have the same one, those with an endpoint of it one of their own.
 */
export class CommonRows {
  readonly #slots = new Map<string, Slot>();
  readonly #byIndex: (Slot | undefined)[] = [];
  readonly #freeIndexes: number[] = [];
  #size = 0;

  /** Rows held for all nodes together. */
  get size(): number {
    return this.#size;
  }

  /** Indexes in use are below this. */
  get indexes(): number {
    return this.#byIndex.length;
  }

  /** Hold the rows of one node more, none at first; close it in the end. */
  open(): NodeRows {
    return new NodeRows(this);
  }

  /** The index of a key, if any node has such a row. */
  indexOf(key: string): number | undefined {
    return this.#slots.get(key)?.index;
  }

  /** The row that a node holds. */
  at(index: number, number: number): ServicePort {
    const form = this.#byIndex[index]?.forms[number - 1];
    invariant(form !== undefined, `a node holds form ${number} of row ${index}, which nobody has`);
    return form.row;
  }

  /** Hold a row for a node; returns the number of its form, from 1. */
  hold(row: ServicePort): readonly [index: number, number: number] {
    const { index, forms } = this.#slots.get(row.key) ?? this.#addSlot(row.key);
    const isOwn = row.endpoints.some(({ isLocal }) => isLocal);
    const known = isOwn ? -1 : forms.findIndex((form) => form?.isOwn === false && isEqual(form.row, row));
    const at = known === -1 ? this.#addForm(forms, row, isOwn) : known;
    (forms[at] as Form).nodes += 1;
    return [index, at + 1];
  }

  /** Let go of what {@link CommonRows.hold} returned. */
  release(index: number, number: number): void {
    const slot = this.#byIndex[index];
    const form = slot?.forms[number - 1];
    invariant(slot !== undefined && form !== undefined, `form ${number} of row ${index} is released once more than it was held`);
    form.nodes -= 1;
    if (form.nodes > 0) return;
    slot.forms[number - 1] = undefined;
    this.#size -= 1;
    if (slot.forms.some((other) => other !== undefined)) return;
    this.#slots.delete(form.row.key);
    this.#byIndex[index] = undefined;
    this.#freeIndexes.push(index);
  }

  #addSlot(key: string): Slot {
    const slot = { index: this.#freeIndexes.pop() ?? this.#byIndex.length, forms: [] };
    this.#slots.set(key, slot);
    this.#byIndex[slot.index] = slot;
    return slot;
  }

  #addForm(forms: (Form | undefined)[], row: ServicePort, isOwn: boolean): number {
    const hole = forms.indexOf(undefined);
    const at = hole === -1 ? forms.length : hole;
    invariant(at < FORMS_MAX, `row ${row.key} is another on each of ${FORMS_MAX} nodes`);
    forms[at] = { row: withEqualParts(forms.find((form) => form !== undefined)?.row, row), isOwn, nodes: 0 };
    this.#size += 1;
    return at;
  }
}

/** The rows of one node: two bytes each, beside those that no other node has. */
export class NodeRows {
  readonly #common: CommonRows;
  /** The number of its form of each row, 0 for none. */
  #numbers = new Uint16Array(0);
  #size = 0;

  constructor(common: CommonRows) {
    this.#common = common;
  }

  /** Rows it has. */
  get size(): number {
    return this.#size;
  }

  /** All rows, in no order that means anything. */
  *values(): Iterable<ServicePort> {
    for (const [index, number] of this.#numbers.entries()) if (number !== 0) yield this.#common.at(index, number);
  }

  /** The row with a key. */
  get(key: string): ServicePort | undefined {
    const index = this.#common.indexOf(key);
    const number = index === undefined ? 0 : (this.#numbers[index] ?? 0);
    return index === undefined || number === 0 ? undefined : this.#common.at(index, number);
  }

  /** Put a row in; returns it as it is held, undefined when it is equal to what was there. */
  set(row: ServicePort): ServicePort | undefined {
    if (isEqual(this.get(row.key), row)) return undefined;
    const [index, number] = this.#common.hold(row);
    if (index >= this.#numbers.length) this.#grow(index + 1);
    if (!this.#release(index)) this.#size += 1;
    this.#numbers[index] = number;
    return this.#common.at(index, number);
  }

  /** Take a row out; returns it, undefined when there was none. */
  delete(key: string): ServicePort | undefined {
    const row = this.get(key);
    const index = this.#common.indexOf(key);
    if (row === undefined || index === undefined) return undefined;
    this.#release(index);
    this.#size -= 1;
    return row;
  }

  /** Let go of all rows. */
  close(): void {
    for (const index of this.#numbers.keys()) this.#release(index);
    this.#numbers = new Uint16Array(0);
    this.#size = 0;
  }

  /** Returns whether there was a row. */
  #release(index: number): boolean {
    const number = this.#numbers[index] ?? 0;
    if (number === 0) return false;
    this.#numbers[index] = 0;
    this.#common.release(index, number);
    return true;
  }

  #grow(least: number): void {
    const numbers = new Uint16Array(Math.max(least, this.#common.indexes, Math.ceil(this.#numbers.length * 1.25)));
    numbers.set(this.#numbers);
    this.#numbers = numbers;
  }
}
