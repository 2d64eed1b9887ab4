import { OpItem, Set as KpngSet, type Ref } from "../gen/kpng/localv1/localv1.ts";
import { notUnderstood } from "../wire/words.ts";

/** One item of one set. */
export interface ItemRef {
  readonly set: number;
  readonly path: string;
}

/** What became of one item: its new bytes, or undefined: it is gone. */
export interface ItemNews extends ItemRef {
  readonly bytes: Buffer | undefined;
}

/** Operations of one change set, and items held. */
const ITEMS_MAX = 4_000_000;

const UNKNOWN: Ref = { Set: KpngSet.UnknownSet, Path: "" };

/**
 * Makes change sets of operations, in whatever order they come.
 *
 * Shape: what came counts when its Sync is there; after a Reset, or on a new stream, what the next Sync ends is the whole state, and the
 * one before stays until then. Paths mean nothing here.
 */
export class OpCollector {
  readonly #held = new Map<string, { readonly ref: ItemRef; readonly bytes: Buffer }>();
  #coming = new Map<string, ItemNews>();
  #isWhole = true;

  /** A new stream begins: it will say everything. */
  restart(): void {
    this.#coming = new Map();
    this.#isWhole = true;
  }

  /**
   * Take one message; at a Sync gives what is different now, which may be nothing.
   *
   * Edges: an op of a kind that is not known is passed over, as a field that is not known is.
   * @throws {ProxyError} `feed_lost` for a change set without end; any other error for bytes that are no OpItem.
   */
  take(bytes: Buffer): readonly ItemNews[] | undefined {
    const { Op } = OpItem.decode(bytes);
    switch (Op?.$case) {
      case "Reset":
        this.restart();
        return undefined;
      case "Set":
        this.#note(Op.value.Ref ?? UNKNOWN, Op.value.Bytes);
        return undefined;
      case "Delete":
        this.#note(Op.value, undefined);
        return undefined;
      case "Sync":
        return this.#settle();
      case undefined:
        return undefined;
    }
  }

  #note({ Set: set, Path: path }: Ref, bytes: Buffer | undefined): void {
    this.#coming.set(`${set} ${path}`, { set, path, bytes });
    if (this.#coming.size > ITEMS_MAX) throw notUnderstood("a change set without end", this.#coming.size);
  }

  #settle(): readonly ItemNews[] {
    const news: ItemNews[] = [];
    if (this.#isWhole) {
      for (const [id, { ref }] of this.#held) if (!this.#coming.has(id)) this.#coming.set(id, { ...ref, bytes: undefined });
    }
    for (const [id, item] of this.#coming) {
      const before = this.#held.get(id)?.bytes;
      const { set, path, bytes } = item;
      if (before === undefined ? bytes === undefined : bytes !== undefined && before.equals(bytes)) continue;
      if (bytes === undefined) this.#held.delete(id);
      else this.#held.set(id, { ref: { set, path }, bytes });
      news.push(item);
    }
    this.#coming = new Map();
    this.#isWhole = false;
    return news;
  }
}
