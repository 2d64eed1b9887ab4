/**
 * The pure heart of Turnout: what the API says in, rows of destinations with ordered rules out, and the ledger that
 * keeps a host in step with them.
 *
 * @packageDocumentation
 */
export * from "./addresses.ts";
export * from "./backend.ts";
export * from "./capabilities.ts";
export * from "./change-set.ts";
export { destinationName } from "./lost-claims.ts";
export * from "./conntrack.ts";
export * from "./equal.ts";
export * from "./errors.ts";
export * from "./health.ts";
export { Ledger } from "./ledger.ts";
export * from "./model.ts";
export * from "./names.ts";
export * from "./node-context.ts";
export * from "./node-port-addresses.ts";
export { createFeed, feedOf, NodeView } from "./node-view.ts";
export type { NodeViewOptions } from "./node-view.ts";
export * from "./objects.ts";
export * from "./observer.ts";
export { boundedFeed, SERVICE_ENTRIES_MAX } from "./service-bound.ts";
export type { ServiceBoundOptions } from "./service-bound.ts";
export { ServiceTable } from "./service-table.ts";
export type { ServiceTableOptions } from "./service-table.ts";
export { Store } from "./store.ts";
export type { StoreChange, StoreOptions } from "./store.ts";
export { SyncLoop } from "./sync-loop.ts";
export type { SyncLoopOptions } from "./sync-loop.ts";
export type { NodeChanges, TableView, TableViewOptions } from "./table-view.ts";
export * from "./verdict/index.ts";
export * from "./world.ts";
