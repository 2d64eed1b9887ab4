/**
 * The laboratory: clusters of network namespaces with real traffic in them, and an API server that can misbehave.
 *
 * @packageDocumentation
 */
export { planCluster, RANGES } from "./address-plan.ts";
export type { ClusterShape } from "./address-plan.ts";
export { createLocalAgent } from "./agent/agent.ts";
export type { Agent } from "./agent/agent.ts";
export type * from "./agent/protocol.ts";
export type { ApiObject } from "./apiserver/api-object.ts";
export { createAuthority } from "./apiserver/certificate.ts";
export type { Authority } from "./apiserver/certificate.ts";
export type { Misbehaviour, WatchListFault } from "./apiserver/faults.ts";
export { kubeconfigFor } from "./apiserver/kubeconfig.ts";
export { createApiServer } from "./apiserver/server.ts";
export type { ApiServer, ApiServerOptions } from "./apiserver/server.ts";
export { removeCgroupTrees } from "./cgroup-tree.ts";
export type { ClusterApi } from "./cluster-api.ts";
export { createCluster } from "./cluster.ts";
export type { Cluster, NodePlace, Place } from "./cluster.ts";
export { DETOUR_TABLE, routeByFirstNode } from "./detour.ts";
export { guardUntilExit } from "./exit-guard.ts";
export { ANSWERED_BYTES, connectTo, CONVERSATIONS, inTurn, visit, visiting } from "./load/conversations.ts";
export type { Conversation, Talk, TrafficMeasureName, TrafficPlace } from "./load/conversations.ts";
export { loadUdpSockets } from "./load/udp-socket.ts";
export { createLaboratory, serveAt } from "./laboratory.ts";
export type { Laboratory } from "./laboratory.ts";
export { nodeManifests, serviceCIDRManifest, serviceManifest, sliceManifests } from "./manifests.ts";
export type { EndpointManifest, PortManifest, ServiceManifest } from "./manifests.ts";
export { leftoversAmong, startTicksOf, thisOwner } from "./namespaces.ts";
export type { Owner } from "./namespaces.ts";
export { createProcess } from "./process.ts";
export type { Ending, NodeProcess } from "./process.ts";
export { openRawSocket } from "./raw/raw-socket.ts";
export type { RawPacket, RawSocket } from "./raw/raw-socket.ts";
export { sweepLeftovers } from "./sweep.ts";
