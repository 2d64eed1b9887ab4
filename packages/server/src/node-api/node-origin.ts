import { eligibilityOf, type Eligibility } from "@turnout/client";
import { NodeLink, type TlsFiles } from "@turnout/client/protocol";
import {
  feedOf,
  isEqual,
  NodeView,
  type Clock,
  type Feed,
  type IPFamily,
  type Issue,
  type Log,
  type NodeSettings,
  type ServicePort,
  type Store,
} from "@turnout/core";

/** What a watcher asks for: the same question gets the same view. */
export interface NodeQuestion {
  readonly nodeName: string;
  readonly settings: NodeSettings;
  /** Canonical, "" for none. */
  readonly bindAddress: string;
}

/** One node's state, however it is come by. */
export interface NodeFeeds {
  /** Called once for each family. */
  feed(family: IPFamily): Feed;
  readonly eligibility: Eligibility;
  close(): void | Promise<void>;
}

/** Where a brain has node states from. */
export interface NodeOrigin {
  /** `onEligibility` hears when the node's eligibility changed. */
  open(question: NodeQuestion, onEligibility: (eligibility: Eligibility) => void): NodeFeeds;
}

const PRUNE_MIN = 1_000;
const SAID_MAX = 10_000;

/**
 * Makes views of many nodes share the rows that are the same for all of them: those without an endpoint on the node.
 *
 * Edges: keeps the newest of each row alone; whoever has an older one keeps it for himself.
 */
export class RowPool {
  readonly #rows = new Map<string, WeakRef<ServicePort>>();
  #pruneAt = PRUNE_MIN;

  /** An equal row that somebody else holds, or this one. */
  readonly share = (row: ServicePort): ServicePort => {
    if (row.endpoints.some(({ isLocal }) => isLocal)) return row;
    const id = `${row.family} ${row.key}`;
    const known = this.#rows.get(id)?.deref();
    if (known !== undefined && isEqual(known, row)) return known;
    this.#rows.set(id, new WeakRef(row));
    if (this.#rows.size > this.#pruneAt) this.#prune();
    return row;
  };

  #prune(): void {
    for (const [id, row] of this.#rows) if (row.deref() === undefined) this.#rows.delete(id);
    this.#pruneAt = PRUNE_MIN + 2 * this.#rows.size;
  }
}

/** Have node states computed from a store. `report` hears of contested addresses, each once however many nodes see it. */
export function createStoreOrigin(store: Store, report: (issue: Issue) => void): NodeOrigin {
  const pool = new RowPool();
  const said = new Map<string, string>();
  const once = (issue: Issue): void => {
    if (said.get(issue.object) === issue.what) return;
    if (said.size >= SAID_MAX) said.clear();
    said.set(issue.object, issue.what);
    report(issue);
  };
  return {
    open({ nodeName, settings, bindAddress }, onEligibility) {
      const views: NodeView[] = [];
      const stopHearing = store.onChange((change) => {
        if (change.kind === "node" && change.key === nodeName) onEligibility(eligibilityOf(store.node(nodeName)));
      });
      return {
        get eligibility() {
          return eligibilityOf(store.node(nodeName));
        },
        feed(family) {
          const view = new NodeView(store, {
            nodeName,
            family,
            settings,
            share: pool.share,
            report: once,
            ...(bindAddress === "" ? {} : { bindAddress }),
          });
          views.push(view);
          return feedOf(view);
        },
        close() {
          stopHearing();
          for (const view of views) view.close();
        },
      };
    },
  };
}

/** What a relay needs. */
export interface RelayOptions {
  /** The brain behind this one. */
  readonly target: string;
  readonly tls?: TlsFiles | undefined;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Have node states from another brain, which is asked with each watcher's own question. */
export function createRelayOrigin({ target, tls, version, clock, log }: RelayOptions): NodeOrigin {
  return {
    open({ nodeName, settings, bindAddress }, onEligibility) {
      const link = new NodeLink({
        target,
        tls,
        nodeName,
        settings,
        version,
        clock,
        log,
        onEligibility,
        ...(bindAddress === "" ? {} : { bindAddress }),
      });
      return {
        get eligibility() {
          return link.eligibility;
        },
        feed: (family) => link.feed(family),
        close: () => link.close(),
      };
    },
  };
}
