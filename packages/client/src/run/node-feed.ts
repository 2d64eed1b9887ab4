import { ProxyError, type ChangeSet, type Feed, type NodeContext } from "@turnout/core";

/**
 * Say why a proxy must start anew after a change of its own node, if it must.
 *
 * Edges: an address or pod CIDRs that were not known before are no reason, nor are addresses besides the primary one of the family; pod
 * CIDRs matter in mode NodeCIDR alone.
 * @source semantics.md 6.2, 6.3 (one node IP of each family); kube-proxy config/node.go
 */
export function restartReason(before: NodeContext, after: NodeContext): ProxyError | undefined {
  const object = `Node ${after.name}`;
  const hint = "exiting so that a supervisor starts the proxy with the new ones; rules stay in force";
  if (before.addresses.length > 0 && before.addresses[0] !== after.addresses[0]) {
    if (after.addresses.length === 0)
      return new ProxyError("not_found", `this node was deleted or lost its ${after.family} addresses`, {
        object,
        hint: "exiting; rules stay in force",
      });
    return new ProxyError(
      "canceled",
      `this node's addresses changed from ${before.addresses.join(", ")} to ${after.addresses.join(", ")}`,
      { object, hint },
    );
  }
  const isByNode = after.settings.detectLocal.mode === "NodeCIDR";
  if (isByNode && before.podCIDRs.length > 0 && before.podCIDRs.join() !== after.podCIDRs.join()) {
    return new ProxyError(
      "canceled",
      `this node's pod CIDRs changed from ${before.podCIDRs.join(", ")} to ${after.podCIDRs.join(", ") || "none"}`,
      { object, hint },
    );
  }
  return undefined;
}

/**
 * A feed that notices what the process around the sync loop must know: changes of the node that need a new start, and
 * whether rows with a health check node port changed.
 */
export class NodeFeed implements Feed {
  readonly #feed: Feed;
  readonly #onRestart: (reason: ProxyError) => void;
  readonly #healthRows = new Set<string>();
  #node: NodeContext | undefined;
  #isHealthTouched = false;

  constructor(feed: Feed, onRestart: (reason: ProxyError) => void) {
    this.#feed = feed;
    this.#onRestart = onRestart;
  }

  /** Tell, once, whether health check node ports may have changed since the last call. */
  takeHealthTouched(): boolean {
    const isTouched = this.#isHealthTouched;
    this.#isHealthTouched = false;
    return isTouched;
  }

  /** @see Feed */
  async next(signal: AbortSignal): Promise<ChangeSet> {
    const changes = await this.#feed.next(signal);
    if (changes.node !== undefined) this.#noteNode(changes.node);
    this.#noteHealth(changes);
    return changes;
  }

  #noteNode(node: NodeContext): void {
    const reason = this.#node === undefined ? undefined : restartReason(this.#node, node);
    this.#node = node;
    if (reason !== undefined) this.#onRestart(reason);
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
