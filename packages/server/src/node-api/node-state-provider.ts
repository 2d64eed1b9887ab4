import { eligibilityOf, isNodeKnown, type Eligibility } from "@turnout/client";
import { NodeLink, PackedReader, type TlsFiles } from "@turnout/client/protocol";
import { ProxyError, type Clock, type ErrorCode, type Feed, type IPFamily, type Issue, type Log, type Store } from "@turnout/core";
import { CommonRows } from "./common-rows.ts";
import { SharedView } from "./shared-view.ts";
import type { NodeStateRequest, StateView } from "./state-view.ts";
import { StoreTables } from "./store-tables.ts";
import { StoreView } from "./store-view.ts";

/** One node's state, however it is come by. */
export interface NodeStates {
  /** Follow it in one family, under the identity of a new history; called once for each. */
  view(family: IPFamily, instance: string): StateView;
  /** Close it and its views; whoever waits is canceled. */
  close(): void | Promise<void>;
}

/** Where a node-state server has node states from. */
export interface NodeStateProvider {
  /** Where they are computed from, if here; then kpng's protocols can be served too. */
  readonly store?: Store;
  /** What is wrong with API objects now. Absent: another node-state server knows. */
  issues?(): Iterable<Issue>;
  open(request: NodeStateRequest): NodeStates;
}

/** What is known of a store's source. */
export interface StoreProviderOptions {
  /** It has a Node object of every node, sooner or later, as an API server does; default false: files need not. */
  readonly hasNodes?: boolean | undefined;
}

/** Have node states computed from a store. `report` hears of contested addresses, each once however many nodes see it. */
export function createStoreProvider(
  store: Store,
  report: (issue: Issue) => void,
  { hasNodes = false }: StoreProviderOptions = {},
): NodeStateProvider {
  const tables = new StoreTables(store, report);
  const viewsOf = new Map<string, Set<StoreView>>();
  const eligibilityFor = ({ nodeName, settings }: NodeStateRequest): Eligibility => {
    // Of one that is gone it is known what it was.
    const isAwaited = hasNodes && !isNodeKnown(store.lastingNode(nodeName), settings);
    return { ...eligibilityOf(store.node(nodeName)), ...(isAwaited ? { isAwaited } : {}) };
  };
  store.onChange((change) => {
    if (change.kind !== "node") return;
    for (const view of viewsOf.get(change.key) ?? []) view.setEligibility(eligibilityFor(view.request));
  });
  return {
    store,
    *issues() {
      yield* store.issues();
      yield* tables.issues();
    },
    open(request) {
      const { nodeName } = request;
      const own: StoreView[] = [];
      return {
        view(family, instance) {
          const view = new StoreView({ tables, request, family, instance, eligibility: eligibilityFor(request) });
          own.push(view);
          viewsOf.set(nodeName, (viewsOf.get(nodeName) ?? new Set()).add(view));
          return view;
        },
        close() {
          for (const view of own) {
            view.close();
            viewsOf.get(nodeName)?.delete(view);
          }
          if (viewsOf.get(nodeName)?.size === 0) viewsOf.delete(nodeName);
        },
      };
    },
  };
}

/** What a relay needs. */
export interface RelayOptions {
  /** The node-state server behind this one. */
  readonly target: string;
  readonly tls?: TlsFiles | undefined;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Follow a feed, and log a refusal once, until there is something again. */
function loggedFeed(feed: Feed, node: string, log: Log): Feed {
  let said: ErrorCode | undefined;
  return {
    async next(signal) {
      try {
        const changes = await feed.next(signal);
        said = undefined;
        return changes;
      } catch (error) {
        if (ProxyError.is(error) && error.code !== "canceled" && error.code !== said) {
          said = error.code;
          log.warn("the node-state server behind this one refuses a request; the client is told", { node, error });
        }
        throw error;
      }
    },
  };
}

/**
 * Have node states from another node-state server, which is asked with each watcher's own request.
 *
 * Edges: while the other node-state server is away watchers wait; what it refuses for good (no right to the node) is refused to whoever
 * asks for it, and asked again when somebody asks again.
 */
export function createRelayProvider({ target, tls, version, clock, log }: RelayOptions): NodeStateProvider {
  const packed = new PackedReader();
  const common: Readonly<Record<IPFamily, CommonRows>> = { IPv4: new CommonRows(), IPv6: new CommonRows() };
  return {
    open({ nodeName, settings, bindAddress }) {
      const views: { readonly family: IPFamily; readonly view: SharedView }[] = [];
      const link = new NodeLink({
        target,
        tls,
        nodeName,
        settings,
        version,
        clock,
        log,
        packed,
        failOnRefusal: true,
        onEligibility: (eligibility, reported) => {
          for (const { family, view } of views) {
            if (reported !== undefined && reported !== family) continue;
            // It is part of a first state; later the change set that it came with goes first: the node it speaks of is in there.
            if (view.hasState) setImmediate(() => view.setEligibility(eligibility));
            else view.setEligibility(eligibility);
          }
        },
        ...(bindAddress === "" ? {} : { bindAddress }),
      });
      return {
        view(family, instance) {
          const feed = loggedFeed(link.feed(family), nodeName, log);
          const view = new SharedView({ feed, rows: common[family].open(), family, instance, eligibility: link.eligibility });
          views.push({ family, view });
          return view;
        },
        close() {
          for (const { view } of views) view.close();
          return link.close();
        },
      };
    },
  };
}
