import { objectId } from "../contract/backend.ts";
import type { Backend, Delta, KernelObject, LeftObjects, Observed, Outcome, Put, SeenPart, WhatIsLeft } from "../contract/backend.ts";
import { isEqual } from "../model/equal.ts";
import type { ProxyError } from "../model/errors.ts";
import { Attempts } from "./attempts.ts";
import { ContestedObjects } from "./contested-objects.ts";
import { KeptObjects } from "./kept-objects.ts";
import { LingeringObjects } from "./lingering-objects.ts";
import { ownerCount, rowsAmong, SKELETON, withoutOwner, withOwner } from "./owners.ts";
import type { Owners } from "./owners.ts";

/** What is known of one object: who wants it, in which form, and what the host holds. */
interface Entry<K> {
  wanted: K | undefined;
  owners: Owners | undefined;
  applied: K | undefined;
}

/** An object that the host holds otherwise than is believed, and what was done to it. */
export interface Drifted<K> {
  readonly id: string;
  readonly fate: "removed" | "changed" | "added";
  /** As it was believed to be, or where there was none as it is. */
  readonly object: K;
  /** What there is now; undefined: nothing. */
  readonly found: K | undefined;
}

function driftedTo<K>(id: string, before: K | undefined, found: K | undefined): readonly Drifted<K>[] {
  const object = before ?? found;
  if (object === undefined) return [];
  return [{ id, fate: found === undefined ? "removed" : before === undefined ? "added" : "changed", object, found }];
}

/**
 * Compares the objects wanted with the objects applied.
 *
 * Shape: rows own objects; equal objects may have several owners and go with the last. The skeleton is one more owner.
 * States of an object: *in force* (the host holds what is wanted); *dirty* (it doesn't, so the next delta has it); of the dirty ones *failed* (it
 * rests: it is in no delta until it changes or {@link Ledger.retryFailed} is called) and *deferred* (in the next delta it comes in turn with what changed since); unwanted
 * and *kept* for a row (it is not removed) or *lingering* (the host still holds something of it).
 * Edges: unequal objects under one identity are a defect of the backend; the last one set counts and {@link Ledger.defects} names them.
 */
export class Ledger<K extends KernelObject> {
  readonly #entries = new Map<string, Entry<K>>();
  readonly #owned = new Map<string, readonly K[]>();
  readonly #dirty = new Set<string>();
  readonly #contested = new ContestedObjects<K>();
  readonly #kept = new KeptObjects();
  /** Those that were deferred are dirty. */
  readonly #attempts = new Attempts<K>();
  readonly #lingering = new LingeringObjects<K>();
  readonly #keepPlaces: Backend<unknown, K, unknown>["keepPlaces"];
  #skeleton: readonly K[] = [];
  #appliedCount = 0;
  /** How far {@link Ledger.nextApplied} has come. */
  #round: MapIterator<[string, Entry<K>]> | undefined;

  /** @param keepPlaces of the backend: what rows own is laid out as the host has it, as far as that goes. */
  constructor(keepPlaces?: Backend<unknown, K, unknown>["keepPlaces"]) {
    this.#keepPlaces = keepPlaces;
  }

  /** Objects the host holds, as far as is known. */
  get appliedCount(): number {
    return this.#appliedCount;
  }

  /** The host holds more than the skeleton, as far as is known. */
  get hasRows(): boolean {
    return this.#appliedCount > this.#skeleton.length;
  }

  /** Objects that the host could not be brought to hold, or to let go of, and what it said. They rest. */
  get failed(): ReadonlyMap<string, ProxyError> {
    return this.#attempts.failed;
  }

  /** Objects to be put or removed that a backend had no time to try. They are in the next delta. */
  get deferred(): ReadonlySet<string> {
    return this.#attempts.deferred;
  }

  /** When the next object that lingers is due to be seen to, ms since the epoch; infinite: none is. */
  get lingeringDueMs(): number {
    return this.#lingering.nextDueMs((id) => this.#isLeftToLinger(id));
  }

  /** Unwanted objects of which the host still holds something. */
  get lingering(): Iterable<string> {
    return this.#lingering.ids();
  }

  /** Identities that are wanted in two different forms at once. */
  get defects(): ReadonlySet<string> {
    return this.#contested.ids;
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

  /** Rows that own an object which the host doesn't hold as it should. */
  owing(): ReadonlySet<string> {
    return this.ownersOf(this.#dirty);
  }

  /** The first object of the skeleton that the host holds in no form, by identity; undefined: it lacks at most what is optional. */
  missing(isOptional: (object: K) => boolean): string | undefined {
    const missing = this.#skeleton.find((object) => this.#entries.get(objectId(object))?.applied === undefined && !isOptional(object));
    return missing && objectId(missing);
  }

  /** Whether nobody wants something else under an object's identity. */
  isFree(object: K): boolean {
    const wanted = this.#entries.get(objectId(object))?.wanted;
    return wanted === undefined || isEqual(wanted.value, object.value);
  }

  /** Rows that own one of these objects. Costs what is asked for. */
  ownersOf(ids: Iterable<string>): ReadonlySet<string> {
    const rows = new Set<string>();
    for (const id of ids) for (const row of rowsAmong(this.#entries.get(id)?.owners)) rows.add(row);
    return rows;
  }

  /** The next objects that are in force, at most so many; after the last of a round fewer, or none. */
  nextApplied(count: number): readonly K[] {
    const some: K[] = [];
    this.#round ??= this.#entries.entries();
    while (some.length < count) {
      const next = this.#round.next();
      if (next.done === true) {
        this.#round = undefined;
        break;
      }
      const [id, { wanted }] = next.value;
      if (wanted !== undefined && !this.#dirty.has(id)) some.push(wanted);
    }
    return some;
  }

  /** Replace what exists whatever the rows are. */
  setSkeleton(objects: readonly K[]): void {
    this.#release(SKELETON, this.#skeleton);
    this.#skeleton = objects;
    this.#acquire(SKELETON, objects);
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
    this.#attempts.retry();
  }

  /** Replace what several rows own at once: an object may pass from one to another in a new form. */
  setRows(rows: ReadonlyMap<string, readonly K[]>): void {
    const coming = new Map<string, readonly K[]>();
    for (const [row, objects] of rows) {
      this.#kept.drop(row);
      // What failed is tried again with its row.
      const difference = this.failed.size === 0 ? differenceOf(this.#owned.get(row), objects) : undefined;
      this.#release(row, difference?.leaving ?? this.#owned.get(row) ?? []);
      coming.set(row, difference?.coming ?? objects);
    }
    for (const [row, objects] of rows) this.#own(row, objects, coming.get(row));
  }

  /** Replace everything wanted: what all rows own may change its form at once, e.g. with a new context. */
  setAll(skeleton: readonly K[], rows: ReadonlyMap<string, readonly K[]>): void {
    this.#release(SKELETON, this.#skeleton);
    this.#kept.clear();
    for (const [row, objects] of this.#owned) this.#release(row, objects);
    this.#owned.clear();
    this.#skeleton = skeleton;
    this.#acquire(SKELETON, skeleton);
    for (const [row, objects] of rows) this.#own(row, objects);
  }

  /** The objects that the host holds otherwise than is believed. What lingers, or failed, may be there or not. */
  differencesTo(observed: Observed<K> | undefined): readonly Drifted<K>[] {
    if (observed === undefined) return [];
    const lingering = new Set(observed.lingering.map(objectId));
    const isOpen = (id: string): boolean => lingering.has(id) || this.#lingering.has(id) || this.#attempts.hasFailed(id);
    const different: Drifted<K>[] = [];
    for (const [id, { applied }] of this.#entries) {
      const found = observed.objects.get(id);
      if (applied !== undefined && found !== applied && !isEqual(found?.value, applied.value) && !isOpen(id))
        different.push(...driftedTo(id, applied, found));
    }
    for (const [id, found] of observed.objects)
      if (this.#entries.get(id)?.applied === undefined && !isOpen(id)) different.push(...driftedTo(id, undefined, found));
    return different;
  }

  /** Believe an observation: from now on the difference is against this. Undefined: nothing is known to be there. */
  adopt(observed: Observed<K> | undefined): void {
    this.#attempts.clearUnconfirmed();
    const deferred = [...this.#attempts.deferred];
    for (const [id, entry] of this.#entries) {
      if (entry.applied !== undefined) this.#setApplied(entry, undefined);
      if (entry.wanted !== undefined) continue;
      this.#entries.delete(id);
      this.#attempts.forget(id);
    }
    for (const id of this.#lingering.ids()) if (!this.#entries.has(id)) this.#attempts.forget(id);
    this.#lingering.adopt(observed?.lingering ?? []);
    for (const [id, object] of observed?.objects ?? []) this.#setApplied(this.#entry(id), object);
    this.#dirty.clear();
    for (const [id, entry] of this.#entries) this.#touch(id, entry);
    // Also unwanted objects that there was no time to remove.
    for (const id of deferred) if (this.#dirty.has(id)) this.#attempts.defer(id);
    this.#kept.found(observed?.objects.keys() ?? []);
  }

  /** Believe that somebody left so much of what the host held, and touched nothing else. Gives the objects of which there is something else now. */
  trust(left: LeftObjects): readonly Drifted<K>[] {
    const changed: Drifted<K>[] = [];
    if (left === "nothing") {
      for (const [id, entry] of this.#entries) {
        const { applied } = entry;
        if (this.#isChangedTo(id, entry, undefined)) changed.push(...driftedTo(id, applied, undefined));
      }
      this.#lingering.adopt([]);
      return changed;
    }
    for (const [id, now] of "covers" in left ? this.#foundIn(left) : this.#leftOf(left)) {
      const held = this.#entries.get(id)?.applied;
      if (held === now || isEqual(held?.value, now?.value)) continue;
      if (this.#isChangedTo(id, this.#entry(id), now)) changed.push(...driftedTo(id, held, now));
    }
    return changed;
  }

  #leftOf(left: ReadonlyMap<string, WhatIsLeft>): readonly (readonly [id: string, now: K | undefined])[] {
    return Array.from(left, ([id, whatIsLeft]) => [id, whatIsLeft(this.#entries.get(id)?.applied) as K | undefined]);
  }

  #foundIn({ covers, objects }: SeenPart): readonly (readonly [id: string, now: K | undefined])[] {
    const gone: string[] = [];
    for (const [id, { applied }] of this.#entries) if (applied !== undefined && covers(applied) && !objects.has(id)) gone.push(id);
    const found = Array.from(objects, ([id, object]) => [id, object as K] as const);
    return [...gone.map((id) => [id, undefined] as const), ...found.filter(([id]) => !this.#lingering.has(id))];
  }

  #isChangedTo(id: string, entry: Entry<K>, now: K | undefined): boolean {
    if (entry.applied === now) return false;
    this.#setApplied(entry, now);
    this.#touch(id, entry);
    return true;
  }

  /** The difference between what is wanted and what is applied, in the order things changed. What was deferred comes in between, so that neither keeps the other out of a turn. */
  delta(nowMs: number): Delta<K> {
    const put: Put<K>[] = [];
    const remove: K[] = [];
    const { deferred } = this.#attempts;
    const waiting = [...deferred].values();
    for (const id of this.#dirty) {
      if (deferred.has(id)) continue;
      this.#plan(id, put, remove);
      const next = waiting.next();
      if (next.done !== true) this.#plan(next.value, put, remove);
    }
    for (const id of waiting) this.#plan(id, put, remove);
    return { put, remove, lingering: this.#lingering.due(nowMs, (id) => this.#isLeftToLinger(id)), nowMs };
  }

  /**
   * Take note that a delta was carried out, but for what `outcome` names.
   *
   * @param nowMs when that was done; default: when it was planned
   */
  commit(delta: Delta<K>, outcome: Outcome<K>, nowMs: number = delta.nowMs): void {
    for (const { after } of delta.put) this.#applied(objectId(after), after, outcome);
    for (const object of delta.remove) this.#applied(objectId(object), undefined, outcome);
    const { failed, deferred, lingering = [] } = outcome;
    for (const one of lingering) this.#lingering.stays(one, nowMs);
    if (delta.lingering.length === 0) return;
    const staying = new Set(lingering.map(({ object }) => objectId(object)));
    for (const { object } of delta.lingering) {
      const id = objectId(object);
      const failure = failed?.get(id);
      if (failure !== undefined) this.#attempts.fail(id, failure, undefined);
      else if (deferred?.has(id) !== true && !staying.has(id)) this.#lingering.ends(id);
    }
  }

  #plan(id: string, put: Put<K>[], remove: K[]): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || this.#isApplied(id, entry)) return this.#markApplied(id, entry);
    if (this.#attempts.hasFailed(id)) return;
    if (entry.wanted === undefined) {
      if (!this.#kept.has(id)) remove.push((entry.applied ?? this.#attempts.unconfirmed(id)) as K);
    } else if (entry.applied !== undefined) put.push({ before: entry.applied, after: entry.wanted });
    else {
      const lingering = this.#lingering.get(id);
      put.push(lingering === undefined ? { after: entry.wanted } : { after: entry.wanted, lingering });
    }
  }

  /** Whether nothing but its lingering is to be done about something that lingers. */
  #isLeftToLinger(id: string): boolean {
    return !this.#attempts.hasFailed(id) && !this.#dirty.has(id) && this.#entries.get(id)?.wanted === undefined;
  }

  #applied(id: string, object: K | undefined, outcome: Outcome<K>): void {
    const failure = outcome.failed?.get(id);
    if (failure !== undefined) return this.#attempts.fail(id, failure, object ?? this.#entries.get(id)?.applied);
    if (outcome.deferred?.has(id) === true) return this.#attempts.defer(id);
    const entry = this.#entry(id);
    this.#setApplied(entry, object);
    this.#attempts.succeed(id);
    this.#lingering.ends(id);
    if (this.#isApplied(id, entry)) this.#markApplied(id, entry);
  }

  #isApplied(id: string, entry: Entry<K>): boolean {
    return isApplied(entry) && this.#attempts.unconfirmed(id) === undefined;
  }

  #setApplied(entry: Entry<K>, object: K | undefined): void {
    if (entry.applied !== undefined) this.#appliedCount--;
    if (object !== undefined) this.#appliedCount++;
    entry.applied = object;
  }

  #markApplied(id: string, entry: Entry<K> | undefined): void {
    this.#dirty.delete(id);
    this.#attempts.forget(id);
    if (entry === undefined) return;
    if (entry.wanted === undefined && entry.applied === undefined) this.#entries.delete(id);
    // Of two equal copies one is enough to keep in memory.
    else entry.applied = entry.wanted;
  }

  #touch(id: string, entry: Entry<K>): void {
    if (entry.wanted !== undefined) entry.wanted = this.#laidOut(entry.wanted, entry.applied);
    if (this.#isApplied(id, entry)) this.#markApplied(id, entry);
    else this.#dirty.add(id);
  }

  /** What is wanted under an identity may be something else now: try it, whatever came of it before. */
  #changed(id: string): void {
    this.#dirty.add(id);
    this.#attempts.forget(id);
  }

  /** @param coming those of them that the row doesn't own yet; default: all. */
  #own(row: string, rendered: readonly K[], coming: readonly K[] = rendered): void {
    const objects = this.#keepPlaces === undefined ? rendered : rendered.map((object) => this.#laidOutHere(object));
    if (objects.length === 0) this.#owned.delete(row);
    else this.#owned.set(row, objects);
    this.#acquire(row, coming === rendered ? objects : coming.map((object) => this.#laidOutHere(object)));
  }

  /** As another owner has it, or else as the host has. What has no parts has no layout. */
  #laidOutHere(object: K): K {
    if (typeof object.value !== "object") return object;
    const { wanted, applied } = this.#entries.get(objectId(object)) ?? {};
    return this.#laidOut(object, wanted ?? applied);
  }

  #laidOut(object: K, held: K | undefined): K {
    return held === undefined || held === object ? object : (this.#keepPlaces?.(object, held) ?? object);
  }

  #release(owner: string, objects: readonly K[]): void {
    for (const object of objects) {
      const id = objectId(object);
      const entry = this.#entries.get(id);
      if (entry === undefined) continue;
      entry.owners = withoutOwner(entry.owners, owner);
      if (entry.owners === undefined) entry.wanted = undefined;
      else if (this.#contested.has(id)) entry.wanted = this.#contested.withdraw(id, object);
      else continue;
      this.#changed(id);
    }
  }

  #acquire(owner: string, objects: readonly K[]): void {
    for (const object of objects) {
      const id = objectId(object);
      const entry = this.#entry(id);
      const isContested = entry.owners !== undefined && entry.wanted !== object && !isEqual(entry.wanted?.value, object.value);
      if (isContested || this.#contested.has(id)) this.#contested.add(id, object, entry.wanted, ownerCount(entry.owners));
      entry.owners = withOwner(entry.owners, owner);
      if (entry.wanted === object) continue;
      entry.wanted = object;
      this.#changed(id);
    }
  }

  #entry(id: string): Entry<K> {
    let entry = this.#entries.get(id);
    if (entry === undefined) this.#entries.set(id, (entry = { wanted: undefined, owners: undefined, applied: undefined }));
    return entry;
  }
}

/**
 * What of the objects of a row isn't among its new ones, and the other way round, as far as that shows from going along both: a row is rendered in one
 * order. What is in neither may have an object of the other list all the same. Objects with parts are never taken for the same.
 */
function differenceOf<K extends KernelObject>(
  before: readonly K[] = [],
  after: readonly K[],
): { readonly leaving: readonly K[]; readonly coming: readonly K[] } {
  const leaving: K[] = [];
  const coming: K[] = [];
  let at = 0;
  for (const object of after) {
    if (isSame(before[at + 1], object) && !isSame(before[at], object)) leaving.push(before[at++] as K);
    if (isSame(before[at], object)) at += 1;
    else coming.push(object);
  }
  for (; at < before.length; at += 1) leaving.push(before[at] as K);
  return { leaving, coming };
}

function isSame(one: KernelObject | undefined, other: KernelObject): boolean {
  return one?.key === other.key && one.kind === other.kind && one.value === other.value;
}

function isApplied<K extends KernelObject>({ wanted, applied }: Entry<K>): boolean {
  if (wanted === applied) return true;
  return wanted !== undefined && applied !== undefined && isEqual(wanted.value, applied.value);
}
