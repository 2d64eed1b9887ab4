import { objectId } from "./backend.ts";
import type { Delta, KernelObject, Lingering, Observed, Outcome, Put } from "./backend.ts";
import { isEqual } from "./equal.ts";

/** What is known of one object: who wants it, in which form, and what the host holds. */
interface Entry<K> {
  wanted: K | undefined;
  owners: number;
  applied: K | undefined;
}

/**
 * Compares the objects wanted with the objects applied.
 *
 * Shape: rows own objects; equal objects may have several owners and go with the last. The skeleton is one more owner.
 * Edges: unequal objects under one identity are a defect of the backend; the last one set counts and
 * {@link Ledger.defects} names them.
 */
export class Ledger<K extends KernelObject> {
  readonly #entries = new Map<string, Entry<K>>();
  readonly #owned = new Map<string, readonly K[]>();
  readonly #dirty = new Set<string>();
  /** Identities wanted in several forms, with those of all owners, the last one set at the end. */
  readonly #contested = new Map<string, K[]>();
  #skeleton: readonly K[] = [];
  #appliedCount = 0;
  #lingering: readonly Lingering<K>[] = [];

  /** Objects the host holds, as far as is known. */
  get appliedCount(): number {
    return this.#appliedCount;
  }

  /** Identities that are wanted in two different forms at once. */
  get defects(): ReadonlySet<string> {
    return new Set(this.#contested.keys());
  }

  /** Every object wanted now, by identity. */
  wanted(): ReadonlyMap<string, K> {
    const wanted = new Map<string, K>();
    for (const [id, entry] of this.#entries) if (entry.wanted !== undefined) wanted.set(id, entry.wanted);
    return wanted;
  }

  /** The objects a row owns; empty when it owns none. */
  objectsOf(row: string): readonly K[] {
    return this.#owned.get(row) ?? [];
  }

  /** Replace what exists whatever the rows are. */
  setSkeleton(objects: readonly K[]): void {
    this.#release(this.#skeleton);
    this.#skeleton = objects;
    this.#acquire(objects);
  }

  /** Replace what one row owns; an empty list when it is gone. */
  setRow(row: string, objects: readonly K[]): void {
    this.#release(this.#owned.get(row) ?? []);
    this.#own(row, objects);
  }

  /** Replace what several rows own at once: an object may pass from one to another in a new form. */
  setRows(rows: ReadonlyMap<string, readonly K[]>): void {
    for (const row of rows.keys()) this.#release(this.#owned.get(row) ?? []);
    for (const [row, objects] of rows) this.#own(row, objects);
  }

  /** Replace everything wanted: what all rows own may change its form at once, e.g. with a new context. */
  setAll(skeleton: readonly K[], rows: ReadonlyMap<string, readonly K[]>): void {
    this.#release(this.#skeleton);
    for (const objects of this.#owned.values()) this.#release(objects);
    this.#owned.clear();
    this.#skeleton = skeleton;
    this.#acquire(skeleton);
    for (const [row, objects] of rows) this.setRow(row, objects);
  }

  /** Believe an observation: from now on the difference is against this. Undefined: nothing is known to be there. */
  adopt(observed: Observed<K> | undefined): void {
    for (const [id, entry] of this.#entries) {
      if (entry.applied !== undefined) this.#setApplied(entry, undefined);
      if (entry.wanted === undefined) this.#entries.delete(id);
    }
    for (const [id, object] of observed?.objects ?? []) this.#setApplied(this.#entry(id), object);
    this.#dirty.clear();
    for (const [id, entry] of this.#entries) this.#touch(id, entry);
    this.#lingering = observed?.lingering ?? [];
  }

  /** The difference between what is wanted and what is applied, in the order things changed. */
  delta(nowMs: number): Delta<K> {
    const put: Put<K>[] = [];
    const remove: K[] = [];
    for (const id of this.#dirty) {
      const entry = this.#entries.get(id);
      if (entry === undefined || isSettled(entry)) this.#settle(id, entry);
      else if (entry.wanted === undefined) remove.push(entry.applied as K);
      else put.push(entry.applied === undefined ? { after: entry.wanted } : { before: entry.applied, after: entry.wanted });
    }
    const lingering = this.#lingering.filter(({ object }) => this.#entries.get(objectId(object))?.wanted === undefined);
    return { put, remove, lingering, nowMs };
  }

  /** Take note that a delta was applied, but for what `outcome` says failed or lingers. */
  commit(delta: Delta<K>, outcome: Outcome<K>): void {
    for (const { after } of delta.put) this.#applied(objectId(after), after, outcome);
    for (const object of delta.remove) this.#applied(objectId(object), undefined, outcome);
    this.#lingering = outcome.lingering ?? [];
  }

  #applied(id: string, object: K | undefined, outcome: Outcome<K>): void {
    if (outcome.failed?.has(id) === true) return;
    const entry = this.#entry(id);
    this.#setApplied(entry, object);
    if (isSettled(entry)) this.#settle(id, entry);
  }

  #setApplied(entry: Entry<K>, object: K | undefined): void {
    if (entry.applied !== undefined) this.#appliedCount--;
    if (object !== undefined) this.#appliedCount++;
    entry.applied = object;
  }

  #settle(id: string, entry: Entry<K> | undefined): void {
    this.#dirty.delete(id);
    if (entry === undefined) return;
    if (entry.wanted === undefined && entry.applied === undefined) this.#entries.delete(id);
    // Of two equal copies one is enough to keep in memory.
    else entry.applied = entry.wanted;
  }

  #touch(id: string, entry: Entry<K>): void {
    if (isSettled(entry)) this.#settle(id, entry);
    else this.#dirty.add(id);
  }

  #own(row: string, objects: readonly K[]): void {
    if (objects.length === 0) this.#owned.delete(row);
    else this.#owned.set(row, objects);
    this.#acquire(objects);
  }

  #release(objects: readonly K[]): void {
    for (const object of objects) {
      const id = objectId(object);
      const entry = this.#entries.get(id);
      if (entry === undefined) continue;
      if (--entry.owners > 0) {
        if (this.#contested.size > 0) this.#withdraw(id, entry, object);
        continue;
      }
      entry.wanted = undefined;
      this.#dirty.add(id);
    }
  }

  #acquire(objects: readonly K[]): void {
    for (const object of objects) {
      const id = objectId(object);
      const entry = this.#entry(id);
      const isContested = entry.owners > 0 && entry.wanted !== object && !isEqual(entry.wanted?.value, object.value);
      if (isContested || (this.#contested.size > 0 && this.#contested.has(id))) this.#contest(id, entry, object);
      entry.owners++;
      if (entry.wanted === object) continue;
      entry.wanted = object;
      this.#dirty.add(id);
    }
  }

  #contest(id: string, { wanted, owners }: Entry<K>, object: K): void {
    const forms = this.#contested.get(id) ?? Array.from({ length: owners }, () => wanted as K);
    forms.push(object);
    this.#contested.set(id, forms);
  }

  /** One owner less of something contested: what counts now is the last form that is left. */
  #withdraw(id: string, entry: Entry<K>, object: K): void {
    const forms = this.#contested.get(id);
    if (forms === undefined) return;
    forms.splice(
      forms.findLastIndex((form) => form === object || isEqual(form.value, object.value)),
      1,
    );
    const last = forms.at(-1);
    entry.wanted = last;
    this.#dirty.add(id);
    if (forms.every((form) => isEqual(form.value, last?.value))) this.#contested.delete(id);
  }

  #entry(id: string): Entry<K> {
    let entry = this.#entries.get(id);
    if (entry === undefined) this.#entries.set(id, (entry = { wanted: undefined, owners: 0, applied: undefined }));
    return entry;
  }
}

function isSettled<K extends KernelObject>({ wanted, applied }: Entry<K>): boolean {
  if (wanted === applied) return true;
  return wanted !== undefined && applied !== undefined && isEqual(wanted.value, applied.value);
}
