import * as localv1 from "../gen/kpng/localv1/localv1.ts";

/** What an item is; a pod's endpoint has a path that stays, an anonymous one's path is its content. */
export type ItemKind = "node" | "service" | "pod" | "anonymous" | "endpoint";

/** Something a watcher is told of; an unchanged item is the same object. */
export interface Item {
  readonly kind: ItemKind;
  readonly set: localv1.Set;
  readonly path: string;
  /** The OpItem that sets it, encoded once for all watchers. */
  readonly bytes: Buffer;
}

/** One item before and after a change; `after` undefined: it is gone. */
export interface ItemChange {
  readonly path: string;
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

/** Works out items from a store, again only for what changed. */
export interface ItemState {
  /** Compute what changed since the last call: by owner (a Service or Node), all the items it has now. The store is synced. */
  refresh(): ReadonlyMap<string, readonly Item[]>;
  close(): void;
}

/**
 * Operations go in this order, so that no client sees an endpoint before its service or after it, and an address that moves
 * to another endpoint is never in two.
 * @source kpng client/localsink; kpng pull request 314
 */
const ORDER: readonly (readonly [op: "set" | "delete", kind: ItemKind])[] = [
  ["set", "node"],
  ["set", "service"],
  ["delete", "anonymous"],
  ["set", "pod"],
  ["delete", "pod"],
  ["set", "anonymous"],
  ["set", "endpoint"],
  ["delete", "endpoint"],
  ["delete", "service"],
  ["delete", "node"],
];

const encode = (op: localv1.OpItem["Op"]): Buffer => Buffer.from(localv1.OpItem.encode({ Op: op }).finish());

/** The op that ends a change set. */
export const SYNC_OP: Buffer = encode({ $case: "Sync", value: {} });

/** The op that announces a whole state. */
export const RESET_OP: Buffer = encode({ $case: "Reset", value: {} });

/** Make an item of an encoded message. */
export function makeItem(kind: ItemKind, set: localv1.Set, path: string, message: Uint8Array): Item {
  return { kind, set, path, bytes: encode({ $case: "Set", value: { Ref: { Set: set, Path: path }, Bytes: Buffer.from(message) } }) };
}

/** Write changes as operations: sets ascending by path, deletes descending, in the order of {@link ORDER}; without a Sync. */
export function* opsOf(changes: readonly ItemChange[]): Generator<Buffer, void> {
  const ascending = changes.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const descending = ascending.toReversed();
  for (const [op, kind] of ORDER) {
    for (const { before, after } of op === "set" ? ascending : descending) {
      if (op === "set" && after?.kind === kind) yield after.bytes;
      else if (op === "delete" && after === undefined && before?.kind === kind) {
        yield encode({ $case: "Delete", value: { Set: before.set, Path: before.path } });
      }
    }
  }
}
