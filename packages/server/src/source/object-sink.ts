import type { Issue, ObjectKind } from "@turnout/core";

/** Where a source hands objects on to; core's Store is one. */
export interface ObjectSink {
  /** Take a new or changed object, raw as the API or a file gave it. Never throws for bad input. */
  upsert(kind: ObjectKind, raw: unknown): void;
  /** Forget an object; `namespace` is "" for cluster-scoped kinds. Unknown ones are no error. */
  remove(kind: ObjectKind, namespace: string, name: string): void;
  /** That kind's first list is complete. May be called again. */
  markSynced(kind: ObjectKind): void;
  /** Take all that is wrong now with what objects are read from, e.g. a file; what was said before holds no more. */
  holdIssues?(issues: readonly Issue[]): void;
  /** Take each `address port` at which the server may be reached, before it is connected to. */
  noteSourceAddresses?(addresses: readonly string[]): void;
}

/** Something that delivers objects: an API server, or files. */
export interface Source {
  /**
   * Deliver until `signal` aborts, then resolve.
   *
   * Edges: losing the API server or a file is not an end; it is logged and retried for ever.
   * @throws {ProxyError} at the start only: `invalid_object`, `not_found` or `permission_denied` for what can't work as configured.
   */
  run(sink: ObjectSink, signal: AbortSignal): Promise<void>;
}
