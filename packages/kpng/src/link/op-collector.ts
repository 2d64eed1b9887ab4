import { OpItem, Set as KpngSet, type Ref } from "../gen/kpng/localv1/localv1.ts";
import { notUnderstood } from "@turnout/client/protocol";

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
 * Shape: what came counts when its Sync is there; after a Reset, or on a new stream, what the next Sync ends is meant to be the whole state.
 * Where that is smaller than the one before, what it lacks is only {@link OpCollector.missing}, until as much is told as before or
 * {@link OpCollector.release} is called. Paths mean nothing here.
 */
export class OpCollector {
  readonly #known = new Map<string, { readonly ref: ItemRef; readonly bytes: Buffer }>();
  #coming = new Map<string, ItemNews>();
  /** Held, and not told again since the new beginning. */
  #missing = new Set<string>();
  #sizeBefore = 0;
  #isWhole = true;

  /** How many items were told before the last new beginning, and not since. */
  get missing(): number {
    return this.#missing.size;
  }

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
  receive(bytes: Buffer): readonly ItemNews[] | undefined {
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
        return this.#complete();
      case undefined:
        return undefined;
    }
  }

  /** What is missing is gone. */
  release(): readonly ItemNews[] {
    const gone: ItemNews[] = [];
    for (const id of this.#missing) {
      const known = this.#known.get(id);
      if (known !== undefined) gone.push({ ...known.ref, bytes: undefined });
      this.#known.delete(id);
    }
    this.#missing = new Set();
    return gone;
  }

  #note({ Set: set, Path: path }: Ref, bytes: Buffer | undefined): void {
    this.#coming.set(`${set} ${path}`, { set, path, bytes });
    if (this.#coming.size > ITEMS_MAX) throw notUnderstood("a change set without end", this.#coming.size);
  }

  #complete(): readonly ItemNews[] {
    const news: ItemNews[] = [];
    if (this.#isWhole) {
      // A new beginning while something was missing: what there was before counts.
      this.#sizeBefore = this.#known.size;
      this.#missing = new Set(this.#known.keys());
    }
    for (const [id, item] of this.#coming) {
      this.#missing.delete(id);
      const before = this.#known.get(id)?.bytes;
      const { set, path, bytes } = item;
      if (before === undefined ? bytes === undefined : bytes !== undefined && before.equals(bytes)) continue;
      if (bytes === undefined) this.#known.delete(id);
      else this.#known.set(id, { ref: { set, path }, bytes });
      news.push(item);
    }
    this.#coming = new Map();
    this.#isWhole = false;
    const isAsLarge = this.#known.size - this.#missing.size >= this.#sizeBefore;
    return isAsLarge ? [...news, ...this.release()] : news;
  }
}
