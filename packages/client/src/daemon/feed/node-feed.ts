import { lastingContext, type ChangeSet, type Feed, type Issue, type Log, type NodeContext } from "@turnout/core";

/**
 * A feed that notices what the process around the sync loop must know: that the node has other addresses, and whether health check node
 * ports changed. Whatever becomes of the node, Services are followed.
 */
export class NodeFeed implements Feed {
  readonly #feed: Feed;
  readonly #log: Log;
  readonly #healthRows = new Set<string>();
  #node: NodeContext | undefined;
  #isHealthTouched = false;

  constructor(feed: Feed, log: Log) {
    this.#feed = feed;
    this.#log = log;
  }

  /** Tell, once, whether health check node ports may have changed since the last call. */
  consumeHealthTouched(): boolean {
    const isTouched = this.#isHealthTouched;
    this.#isHealthTouched = false;
    return isTouched;
  }

  /** @see Feed */
  async next(signal: AbortSignal): Promise<ChangeSet> {
    const changes = await this.#feed.next(signal);
    this.#noteHealth(changes);
    return changes.node === undefined ? changes : { ...changes, node: this.#noteNode(changes.node, changes.full) };
  }

  /** @see Feed */
  issues(): Iterable<Issue> {
    return this.#feed.issues?.() ?? [];
  }

  #noteNode(reported: NodeContext, isFull: boolean): NodeContext {
    const before = this.#node;
    // A node-state server that only tells what changed knows the node: it has no address of this family any more.
    const node = isFull ? lastingContext(before, reported) : reported;
    this.#node = node;
    if (before === undefined || before.addresses[0] === node.addresses[0]) return node;
    // They are answered on the node's primary address.
    this.#isHealthTouched = true;
    const { name, family } = node;
    const say = (addresses: readonly string[]): string => addresses.join(" ") || "unknown";
    this.#log.info("this node has another address", { node: name, family, before: say(before.addresses), now: say(node.addresses) });
    return node;
  }

  #noteHealth(changes: ChangeSet): void {
    if (changes.full && this.#healthRows.size > 0) {
      this.#healthRows.clear();
      this.#isHealthTouched = true;
    }
    for (const key of changes.delete) if (this.#healthRows.delete(key)) this.#isHealthTouched = true;
    for (const row of changes.set) {
      const had = this.#healthRows.delete(row.key);
      if (row.healthCheck !== undefined) this.#healthRows.add(row.key);
      if (had || row.healthCheck !== undefined) this.#isHealthTouched = true;
    }
  }
}
