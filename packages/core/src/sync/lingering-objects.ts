import { objectId } from "../contract/backend.ts";
import type { Due, KernelObject, Lingering } from "../contract/backend.ts";

/** One object that lingers. Times in ms since the epoch; `sinceMs` undefined: it was found and in no plan yet. */
interface Entry<K> {
  readonly object: K;
  readonly sinceMs: number | undefined;
  readonly dueMs: number;
}

/** The only memory of unwanted objects of which the host still holds something: what it holds, since when, and when to see to it again. */
export class LingeringObjects<K extends KernelObject> {
  readonly #entries = new Map<string, Entry<K>>();

  /** What the host holds of an object; undefined: it does not linger. */
  get(id: string): K | undefined {
    return this.#entries.size === 0 ? undefined : this.#entries.get(id)?.object;
  }

  has(id: string): boolean {
    return this.#entries.has(id);
  }

  ids(): Iterable<string> {
    return this.#entries.keys();
  }

  /** A backend said that it lingers. */
  stays({ object, afterMs }: Lingering<K>, nowMs: number): void {
    const id = objectId(object);
    this.#entries.set(id, { object, sinceMs: this.#entries.get(id)?.sinceMs ?? nowMs, dueMs: nowMs + afterMs });
  }

  /** It is gone, or in force again. */
  ends(id: string): void {
    this.#entries.delete(id);
  }

  /** Believe what was found on the host: nothing else lingers, and all of it is due. */
  adopt(found: readonly K[]): void {
    const known = new Map(this.#entries);
    this.#entries.clear();
    for (const object of found) {
      const id = objectId(object);
      this.#entries.set(id, { object, sinceMs: known.get(id)?.sinceMs, dueMs: Number.NEGATIVE_INFINITY });
    }
  }

  /** What is due, of those that nothing else is done about. */
  due(nowMs: number, isOpen: (id: string) => boolean): readonly Due<K>[] {
    const due: Due<K>[] = [];
    for (const [id, { object, sinceMs = nowMs, dueMs }] of this.#entries) if (dueMs <= nowMs && isOpen(id)) due.push({ object, sinceMs });
    return due;
  }

  /** When the first of those that nothing else is done about is due; infinite: none ever. */
  nextDueMs(isOpen: (id: string) => boolean): number {
    let next = Number.POSITIVE_INFINITY;
    for (const [id, { dueMs }] of this.#entries) if (dueMs < next && isOpen(id)) next = dueMs;
    return next;
  }
}
