/**
 * The pure heart of Turnout: what the API says in, rows of destinations with ordered rules out, and the ledger that
 * keeps a host in step with them.
 *
 * @packageDocumentation
 */
export * from "./model/addresses.ts";
export * from "./contract/backend.ts";
export * from "./contract/capabilities.ts";
export * from "./model/change-set.ts";
export { destinationName } from "./policy/lost-claims.ts";
export * from "./sync/conntrack.ts";
export * from "./model/equal.ts";
export * from "./model/errors.ts";
export * from "./model/halves.ts";
export * from "./model/health.ts";
export { Ledger } from "./sync/ledger.ts";
export * from "./model/rows.ts";
export * from "./model/names.ts";
export * from "./policy/node-context.ts";
export * from "./model/node-port-addresses.ts";
export { createFeed, feedOf, NodeView } from "./state/node-view.ts";
export type { NodeViewOptions } from "./state/node-view.ts";
export * from "./model/api-objects.ts";
export * from "./sync/observer.ts";
export { boundedFeed, SERVICE_ENTRIES_MAX } from "./sync/service-bound.ts";
export type { ServiceBoundOptions } from "./sync/service-bound.ts";
export { ServiceTable } from "./state/service-table.ts";
export type { ServiceTableOptions } from "./state/service-table.ts";
export { Store } from "./state/store.ts";
export type { StoreChange, StoreOptions } from "./state/store.ts";
export { SyncLoop } from "./sync/sync-loop.ts";
export type { SyncLoopOptions } from "./sync/sync-loop.ts";
export type { NodeChanges, TableView, TableViewOptions } from "./state/table-view.ts";
export { Waiters } from "./model/waiters.ts";
export * from "./contract/world.ts";
export { WantedRows } from "./sync/wanted-rows.ts";
