import type { ObjectKind } from "@turnout/core";
import type { ObjectSink } from "../source/object-sink.ts";
import { keyOf, splitKey, type RawObject } from "../source/raw-object.ts";

/**
 * What has been handed on of one kind, as keys and resourceVersions only, so that a relist is compared rather than trusted.
 *
 * Edges: an object whose resourceVersion is the known one is not handed on again.
 */
export class KnownObjects {
  readonly #kind: ObjectKind;
  readonly #sink: ObjectSink;
  readonly #revisions = new Map<string, string>();

  constructor(kind: ObjectKind, sink: ObjectSink) {
    this.#kind = kind;
    this.#sink = sink;
  }

  /** How many objects are known. */
  get size(): number {
    return this.#revisions.size;
  }

  /** Take an object; `seen` collects its key. Returns whether it was new or changed. */
  put(object: RawObject, seen?: Set<string>): boolean {
    const key = keyOf(object);
    seen?.add(key);
    const { resourceVersion } = object.metadata;
    const revision = typeof resourceVersion === "string" ? resourceVersion : "";
    // Without a resourceVersion nothing can be compared.
    if (revision !== "" && this.#revisions.get(key) === revision) return false;
    this.#revisions.set(key, revision);
    this.#sink.upsert(this.#kind, object);
    return true;
  }

  /** Forget an object; unknown ones are left alone. */
  delete(key: string): void {
    if (!this.#revisions.delete(key)) return;
    const { namespace, name } = splitKey(key);
    this.#sink.remove(this.#kind, namespace, name);
  }

  /** Forget everything that is not in `seen`: it vanished while nobody watched. Returns how many. */
  deleteOthers(seen: ReadonlySet<string>): number {
    const gone = [...this.#revisions.keys()].filter((key) => !seen.has(key));
    for (const key of gone) this.delete(key);
    return gone.length;
  }
}
