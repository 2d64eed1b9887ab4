/**
 * The node-state API's serving side: node states computed from a store, or had from another node-state server, served over gRPC.
 *
 * @packageDocumentation
 */
export { createRelayProvider, createStoreProvider } from "./node-api/node-state-provider.ts";
export type { NodeStateProvider, NodeStates, RelayOptions, StoreProviderOptions } from "./node-api/node-state-provider.ts";
export type { NodeStateRequest } from "./node-api/state-view.ts";
export { serveNodeState } from "./node-api/node-state-server.ts";
export type { NodeStateServer, NodeStateServerOptions, ServerStats } from "./node-api/node-state-server.ts";
export { SERVER_LIMITS } from "./node-api/server-limits.ts";
export type { ServerLimits } from "./node-api/server-limits.ts";
export type { Cursor, StateView } from "./node-api/state-view.ts";
export { openGrpcServer, watchService } from "./grpc/grpc-server.ts";
export type { GrpcService } from "./grpc/grpc-server.ts";
export { ALL_RIGHTS } from "./grpc/peer-rights.ts";
export type { PeerRights, PeerRightsOf } from "./grpc/peer-rights.ts";
export { refuse } from "./grpc/refuse.ts";
export type { Admit, WatchCall } from "./grpc/refuse.ts";
export type { StoreApi, StoreApiOptions } from "./grpc/store-api.ts";
export type { StreamSlot } from "./grpc/stream-gate.ts";
export { Traffic } from "./grpc/traffic.ts";
export type { TrafficCounts } from "./grpc/traffic.ts";
export type { UnixListenerOptions } from "./grpc/unix-listener.ts";
