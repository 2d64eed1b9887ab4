import type { ChangeSet, NodeContext, NodeSettings, ServicePort } from "../model/rows.ts";
import { DEFAULT_SETTINGS } from "../policy/node-context.ts";
import { NodeView } from "../state/node-view.ts";
import { OBJECT_KINDS } from "../model/api-objects.ts";
import type { IPFamily, Issue, ObjectKind } from "../model/api-objects.ts";
import type { AllowedAddresses } from "../intake/allowed-addresses.ts";
import { Store } from "../state/store.ts";
import type { RawObject } from "./objects.ts";

/** From where a view looks. */
export interface ViewShort {
  /** Default "node1". */
  readonly nodeName?: string;
  /** Default "IPv4". */
  readonly family?: IPFamily;
  /** Replace fields of the default settings. */
  readonly settings?: Partial<NodeSettings>;
  readonly bindAddress?: string;
  /** Default: all. */
  readonly allowedAddresses?: AllowedAddresses;
}

/** Settings that tell pods by the cluster range 10.1.0.0/16. */
export const POD_SETTINGS: NodeSettings = {
  ...DEFAULT_SETTINGS,
  detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00:1::/32"] },
};

/** A store with a view on it and everything either of them reported. */
export interface StoreView {
  readonly store: Store;
  readonly view: NodeView;
  readonly issues: Issue[];
  /** Take what changed; undefined when nothing did. */
  pull(): ChangeSet | undefined;
}

/** Put one API object of any kind into a store. */
export function upsertRaw(store: Store, raw: RawObject): void {
  store.upsert(raw["kind"] as ObjectKind, raw);
}

/** Make a synced store that holds `objects`, and one node's view of it. */
export function createStoreView(objects: readonly RawObject[], short: ViewShort = {}): StoreView {
  const issues: Issue[] = [];
  const report = (issue: Issue): void => void issues.push(issue);
  const { nodeName = "node1", family = "IPv4", settings, bindAddress, allowedAddresses } = short;
  const store = new Store({ report, allowedAddresses });
  const view = new NodeView(store, {
    nodeName,
    family,
    settings: { ...POD_SETTINGS, ...settings },
    report,
    ...(bindAddress === undefined ? {} : { bindAddress }),
  });
  for (const raw of objects) upsertRaw(store, raw);
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  return { store, view, issues, pull: (): ChangeSet | undefined => view.pull() };
}

/** Compute the rows of a node for these objects, by key. */
export function rowsOf(objects: readonly RawObject[], short: ViewShort = {}): ReadonlyMap<string, ServicePort> {
  const { view } = createStoreView(objects, short);
  view.pull();
  return view.rows;
}

/** What a proxy is to bring into force in one family. */
export interface WantedState {
  readonly rows: ReadonlyMap<string, ServicePort>;
  readonly node: NodeContext;
  /** Default: as the rows have it. */
  readonly hasManyEndpoints?: boolean;
}

/** The rows and context that API objects come to. */
export function stateOfObjects(objects: readonly RawObject[], short: ViewShort): WantedState {
  const { view, pull } = createStoreView(objects, short);
  const node = pull()?.node;
  if (node === undefined) throw new Error("a synced store gives a full change set");
  return { rows: new Map(view.rows), node };
}
