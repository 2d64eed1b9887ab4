/**
 * The node-state API's serving side: node states computed from a store, or had from another brain, served over gRPC.
 *
 * @packageDocumentation
 */
export { createRelayOrigin, createStoreOrigin } from "./node-api/node-origin.ts";
export type { NodeOrigin, NodeStates, RelayOptions, StoreOriginOptions } from "./node-api/node-origin.ts";
export type { NodeQuestion } from "./node-api/node-question.ts";
export { serveNodeState } from "./node-api/node-state-server.ts";
export type { NodeStateServer, NodeStateServerOptions, ServerStats } from "./node-api/node-state-server.ts";
export type { ServerLimits } from "./node-api/server-limits.ts";
export type { Cursor, StateView } from "./node-api/state-view.ts";
export type { TrafficCounts } from "./grpc/traffic.ts";
export type { UnixListenerOptions } from "./grpc/unix-listener.ts";
