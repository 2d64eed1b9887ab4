import { isDeepStrictEqual } from "node:util";
import { objectKey, type ApiObject } from "./api-object.ts";
import type { ServedKind } from "./resources.ts";

/** One write: created (no `before`), changed, or deleted (no `after`). */
export interface StoredEvent {
  readonly revision: number;
  readonly kind: ServedKind;
  readonly key: string;
  readonly before: ApiObject | undefined;
  /** Carries the event's revision as its resourceVersion. */
  readonly after: ApiObject | undefined;
}

/** Bounds of the history. */
export interface ObjectStoreOptions {
  /** Events remembered before the older half is compacted. */
  readonly historyMax: number;
}

/**
 * The emulator's etcd: objects, one increasing revision, and a history that can be compacted.
 *
 * Shape: objects are frozen by convention; a write replaces. Revisions start at 1000 so that a text sort shows.
 */
export class ObjectStore {
  #revision = 1000;
  #compacted = 1000;
  #history: StoredEvent[] = [];
  readonly #objects = new Map<ServedKind, Map<string, ApiObject>>();
  readonly #listeners = new Set<(event: StoredEvent) => void>();
  readonly #options: ObjectStoreOptions;

  constructor(options: ObjectStoreOptions) {
    this.#options = options;
  }

  /** The revision of the newest write. */
  get revision(): number {
    return this.#revision;
  }

  /** Find one object. */
  get(kind: ServedKind, key: string): ApiObject | undefined {
    return this.#objects.get(kind)?.get(key);
  }

  /** List a kind's objects by key, as they are now. */
  list(kind: ServedKind): readonly ApiObject[] {
    return sorted(this.#objects.get(kind) ?? new Map<string, ApiObject>());
  }

  /** List a kind's objects as they were at `revision`; undefined when that is compacted away. */
  listAt(kind: ServedKind, revision: number): readonly ApiObject[] | undefined {
    if (revision < this.#compacted) return undefined;
    const then = new Map(this.#objects.get(kind));
    for (let index = this.#history.length - 1; index >= 0; index--) {
      const event = this.#history[index];
      if (event === undefined || event.revision <= revision) break;
      if (event.kind !== kind) continue;
      if (event.before === undefined) then.delete(event.key);
      else then.set(event.key, event.before);
    }
    return sorted(then);
  }

  /** List the writes after `revision`; undefined when some of them are compacted away. */
  eventsAfter(revision: number): readonly StoredEvent[] | undefined {
    if (revision < this.#compacted) return undefined;
    return this.#history.filter((event) => event.revision > revision);
  }

  /** Store an object under a new resourceVersion; one equal to what is there changes nothing, as in Kubernetes. */
  put(kind: ServedKind, object: ApiObject): ApiObject {
    const key = objectKey(object.metadata.namespace ?? "", object.metadata.name);
    const before = this.get(kind, key);
    if (before !== undefined && isDeepStrictEqual(before, versioned(object, before.metadata.resourceVersion ?? ""))) {
      return before;
    }
    const after = versioned(object, String(this.#revision + 1));
    this.#kind(kind).set(key, after);
    this.#record({ revision: this.#revision + 1, kind, key, before, after });
    return after;
  }

  /** Delete an object; undefined when there was none. */
  remove(kind: ServedKind, key: string): ApiObject | undefined {
    const before = this.get(kind, key);
    if (before === undefined) return undefined;
    this.#kind(kind).delete(key);
    this.#record({ revision: this.#revision + 1, kind, key, before, after: undefined });
    return before;
  }

  /** Forget the history: every watch from before now, and every continue token, is answered with 410. */
  compact(): void {
    // A revision of its own, so that a client that saw the newest write is behind too.
    this.#revision++;
    this.#compacted = this.#revision;
    this.#history = [];
  }

  /** Hear of every write, synchronously. Returns the way to stop. */
  onEvent(listener: (event: StoredEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #kind(kind: ServedKind): Map<string, ApiObject> {
    const found = this.#objects.get(kind) ?? new Map<string, ApiObject>();
    this.#objects.set(kind, found);
    return found;
  }

  #record(event: StoredEvent): void {
    this.#revision = event.revision;
    this.#history.push(event);
    if (this.#history.length > this.#options.historyMax) {
      const forgotten = this.#history.splice(0, Math.ceil(this.#history.length / 2));
      this.#compacted = forgotten.at(-1)?.revision ?? this.#compacted;
    }
    for (const listener of this.#listeners) listener(event);
  }
}

/** Give `object` the resourceVersion a write or an event gave it. */
export function versioned(object: ApiObject, resourceVersion: string): ApiObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

function sorted(objects: ReadonlyMap<string, ApiObject>): readonly ApiObject[] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}
