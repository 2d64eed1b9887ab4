import { objectId } from "../contract/backend.ts";
import type { Delta, KernelObject, Lingering, Observed, Outcome, Put } from "../contract/backend.ts";
import { isEqual } from "../model/equal.ts";
import type { ProxyError } from "../model/errors.ts";
import { KeptObjects } from "./kept-objects.ts";

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
 * Edges: what the host holds of an object that failed is in doubt until it is put, removed or looked at. Unequal objects under one identity are a defect of the backend; the last one set counts and
 * {@link Ledger.defects} names them. What the host could not take rests: it is in no delta until it changes or
 * {@link Ledger.retryFailed} is called. What is kept for a row is not removed.
 */
export class Ledger<K extends KernelObject> {
  readonly #entries = new Map<string, Entry<K>>();
  readonly #owned = new Map<string, readonly K[]>();
  readonly #dirty = new Set<string>();
  /** Identities wanted in several forms, with those of all owners, the last one set at the end. */
  readonly #contested = new Map<string, K[]>();
  readonly #kept = new KeptObjects();
  readonly #failed = new Map<string, ProxyError>();
  /** What was tried last of objects that failed: the host may hold it, what it held before, or something between. */
  readonly #doubtful = new Map<string, K>();
  #skeleton: readonly K[] = [];
  #appliedCount = 0;
  #lingering: readonly Lingering<K>[] = [];

  /** Objects the host holds, as far as is known. */
  get appliedCount(): number {
    return this.#appliedCount;
  }

  /** Objects that the host could not be brought to hold, or to let go of, and what it said. They rest. */
  get failed(): ReadonlyMap<string, ProxyError> {
    return this.#failed;
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

  /** Rows that own an object which the host doesn't hold as it should. Looks through everything. */
  owing(): ReadonlySet<string> {
    return this.ownersOf(this.#dirty);
  }

  /** Whether nobody wants something else under an object's identity. */
  isFree(object: K): boolean {
    const wanted = this.#entries.get(objectId(object))?.wanted;
    return wanted === undefined || isEqual(wanted.value, object.value);
  }

  /** Rows that own one of these objects. Looks through everything. */
  ownersOf(ids: { has(id: string): boolean }): ReadonlySet<string> {
    const rows = new Set<string>();
    for (const [row, objects] of this.#owned) if (objects.some((object) => ids.has(objectId(object)))) rows.add(row);
    return rows;
  }

  /** Replace what exists whatever the rows are. */
  setSkeleton(objects: readonly K[]): void {
    this.#release(this.#skeleton);
    this.#skeleton = objects;
    this.#acquire(objects);
  }

  /** Replace what one row owns; an empty list when it is gone. */
  setRow(row: string, objects: readonly K[]): void {
    this.setRows(new Map([[row, objects]]));
  }

  /**
   * Want nothing for a row, but leave what the host holds of it, in whatever form that is.
   *
   * Shape: `ids` are the objects that may be the row's; undefined: nobody knows, so all that the host held when it was looked at first, and
   * that no other row accounts for since ({@link Ledger.account}).
   */
  keepRow(row: string, ids: readonly string[] | undefined): void {
    this.setRow(row, []);
    this.#kept.keep(row, ids);
  }

  /** What is wanted is in force, but for rows that are kept: whatever else the host held at first is nobody's. */
  account(isShared: (object: K) => boolean = (): boolean => false): void {
    this.#kept.account((id) => {
      const wanted = this.#entries.get(id)?.wanted;
      return wanted !== undefined && !isShared(wanted);
    });
  }

  /** Have the next delta try again what the host could not take. */
  retryFailed(): void {
    this.#failed.clear();
  }

  /** Replace what several rows own at once: an object may pass from one to another in a new form. */
  setRows(rows: ReadonlyMap<string, readonly K[]>): void {
    for (const row of rows.keys()) {
      this.#kept.drop(row);
      this.#release(this.#owned.get(row) ?? []);
    }
    for (const [row, objects] of rows) this.#own(row, objects);
  }

  /** Replace everything wanted: what all rows own may change its form at once, e.g. with a new context. */
  setAll(skeleton: readonly K[], rows: ReadonlyMap<string, readonly K[]>): void {
    this.#release(this.#skeleton);
    this.#kept.clear();
    for (const objects of this.#owned.values()) this.#release(objects);
    this.#owned.clear();
    this.#skeleton = skeleton;
    this.#acquire(skeleton);
    for (const [row, objects] of rows) this.#own(row, objects);
  }

  /** Count the objects that the host holds otherwise than is believed. What lingers, or failed, may be there or not. */
  differencesTo(observed: Observed<K> | undefined): number {
    if (observed === undefined) return 0;
    const lingering = new Set([...this.#lingering, ...observed.lingering].map(({ object }) => objectId(object)));
    const isOpen = (id: string): boolean => lingering.has(id) || this.#failed.has(id);
    let count = 0;
    for (const [id, { applied }] of this.#entries) {
      const found = observed.objects.get(id);
      if (applied !== undefined && found !== applied && !isEqual(found?.value, applied.value) && !isOpen(id)) count++;
    }
    for (const id of observed.objects.keys()) if (this.#entries.get(id)?.applied === undefined && !isOpen(id)) count++;
    return count;
  }

  /** Believe an observation: from now on the difference is against this. Undefined: nothing is known to be there. */
  adopt(observed: Observed<K> | undefined): void {
    this.#doubtful.clear();
    for (const [id, entry] of this.#entries) {
      if (entry.applied !== undefined) this.#setApplied(entry, undefined);
      if (entry.wanted !== undefined) continue;
      this.#entries.delete(id);
      this.#failed.delete(id);
    }
    for (const [id, object] of observed?.objects ?? []) this.#setApplied(this.#entry(id), object);
    this.#dirty.clear();
    for (const [id, entry] of this.#entries) this.#touch(id, entry);
    this.#lingering = observed?.lingering ?? [];
    this.#kept.found(observed?.objects.keys() ?? []);
  }

  /** The difference between what is wanted and what is applied, in the order things changed. */
  delta(nowMs: number): Delta<K> {
    const put: Put<K>[] = [];
    const remove: K[] = [];
    for (const id of this.#dirty) {
      const entry = this.#entries.get(id);
      if (entry === undefined || this.#isSettled(id, entry)) this.#settle(id, entry);
      else if (this.#failed.size > 0 && this.#failed.has(id)) continue;
      else if (entry.wanted !== undefined)
        put.push(entry.applied === undefined ? { after: entry.wanted } : { before: entry.applied, after: entry.wanted });
      else if (!this.#kept.has(id)) remove.push((entry.applied ?? this.#doubtful.get(id)) as K);
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
    const failure = outcome.failed?.get(id);
    if (failure !== undefined) {
      this.#failed.set(id, failure);
      const tried = object ?? this.#entries.get(id)?.applied;
      if (tried !== undefined) this.#doubtful.set(id, tried);
      return;
    }
    const entry = this.#entry(id);
    this.#setApplied(entry, object);
    this.#doubtful.delete(id);
    if (this.#isSettled(id, entry)) this.#settle(id, entry);
  }

  #isSettled(id: string, entry: Entry<K>): boolean {
    return isSettled(entry) && !(this.#doubtful.size > 0 && this.#doubtful.has(id));
  }

  #setApplied(entry: Entry<K>, object: K | undefined): void {
    if (entry.applied !== undefined) this.#appliedCount--;
    if (object !== undefined) this.#appliedCount++;
    entry.applied = object;
  }

  #settle(id: string, entry: Entry<K> | undefined): void {
    this.#dirty.delete(id);
    this.#failed.delete(id);
    if (entry === undefined) return;
    if (entry.wanted === undefined && entry.applied === undefined) this.#entries.delete(id);
    // Of two equal copies one is enough to keep in memory.
    else entry.applied = entry.wanted;
  }

  #touch(id: string, entry: Entry<K>): void {
    if (this.#isSettled(id, entry)) this.#settle(id, entry);
    else this.#dirty.add(id);
  }

  /** What is wanted under an identity may be something else now: try it, whatever came of it before. */
  #changed(id: string): void {
    this.#dirty.add(id);
    this.#failed.delete(id);
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
      this.#changed(id);
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
      this.#changed(id);
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
    this.#changed(id);
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
