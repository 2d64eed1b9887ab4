import { applyChangeSet, type ChangeSet, type Feed, type NodeContext, type ServicePort } from "@turnout/core";
import type { Eligibility } from "../eligibility.ts";

/** What came while nothing was let through. */
interface Buffered {
  readonly rows: ReadonlyMap<string, ServicePort>;
  readonly node: NodeContext | undefined;
  readonly newest: ChangeSet;
}

/**
 * Lets one family's change sets through once the node-state server knows of the node what rules need: what stands in a kernel
 * before then is better than rules without node ports.
 */
export class NodeGate {
  readonly #known = new AbortController();
  #buffered: Buffered | undefined;

  /** The node-state server said this; whoever waits for it is told after. A whole state that says nothing of the node awaits nothing. */
  heard({ changes, eligibility }: { readonly changes: Pick<ChangeSet, "full">; readonly eligibility: Eligibility | undefined }): void {
    if (eligibility === undefined ? changes.full : eligibility.isAwaited !== true) this.open();
  }

  /** Everything is let through. */
  get isOpen(): boolean {
    return this.#known.signal.aborted;
  }

  /** There is nothing to wait for. */
  open(): void {
    this.#known.abort();
  }

  /**
   * Take the next change set from `feed`, the first when it may be let through: all that came meanwhile is one.
   * @throws what `feed` throws. `onWait` is called when there is something, and it may not.
   */
  async next(feed: Feed, signal: AbortSignal, onWait: () => void): Promise<ChangeSet> {
    const known = this.#known.signal;
    if (this.#buffered === undefined) {
      const first = await feed.next(signal);
      if (known.aborted) return first;
      this.#buffer(first);
      onWait();
    }
    const either = AbortSignal.any([signal, known]);
    while (!known.aborted) {
      try {
        this.#buffer(await feed.next(either));
      } catch (error) {
        if (signal.aborted || !known.aborted) throw error;
      }
    }
    return this.#release();
  }

  #buffer(changes: ChangeSet): void {
    const rows = applyChangeSet(this.#buffered?.rows ?? new Map(), changes);
    this.#buffered = { rows, node: changes.node ?? this.#buffered?.node, newest: changes };
  }

  #release(): ChangeSet {
    const buffered = this.#buffered;
    if (buffered === undefined) throw new Error("nothing was held");
    this.#buffered = undefined;
    const { rows, node, newest } = buffered;
    return { ...newest, full: true, ...(node === undefined ? {} : { node }), set: [...rows.values()], delete: [], triggersMs: [] };
  }
}
