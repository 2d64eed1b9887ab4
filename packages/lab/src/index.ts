/**
 * The laboratory: clusters of network namespaces with real traffic in them, and an API server that can misbehave.
 *
 * @packageDocumentation
 */
export { FABRIC, planCluster, RANGES } from "./address-plan.ts";
export type { ClusterPlan, ClusterShape, NodeOptions, PlaceKind, PlannedLink, PlannedPlace } from "./address-plan.ts";
export type { Agent } from "./agent/agent.ts";
export { createLocalAgent } from "./agent/local-agent.ts";
export type * from "./agent/protocol.ts";
export * from "./apiserver/index.ts";
export type { ApiCalls } from "./api-calls.ts";
export { removeCgroupTree } from "./cgroup-tree.ts";
export { startClusterApi } from "./cluster-api.ts";
export type { ClusterApi } from "./cluster-api.ts";
export { createCluster } from "./cluster.ts";
export type { Cluster, ClusterOptions, NodePlace, Place, SpawnOptions } from "./cluster.ts";
export { DETOUR_TABLE, routeByFirstNode } from "./detour.ts";
export { guardUntilExit } from "./exit-guard.ts";
export type { ExitGuard } from "./exit-guard.ts";
export { ANSWERED_BYTES, connectTo, CONVERSATIONS, inTurn, visit, visiting } from "./load/conversations.ts";
export type { Conversation, Talk, TrafficMeasureName, TrafficPlace } from "./load/conversations.ts";
export { loadUdpSockets } from "./load/udp-socket.ts";
export type { UdpSocket, UdpSockets } from "./load/udp-socket.ts";
export { createLaboratory, serveAt } from "./laboratory.ts";
export type { Laboratory } from "./laboratory.ts";
export { nodeManifests, serviceCIDRManifest, serviceManifest, sliceManifests } from "./manifests.ts";
export type { EndpointManifest, PortManifest, ServiceManifest } from "./manifests.ts";
export { leftoversAmong, startTicksOf, thisOwner } from "./namespaces.ts";
export type { Owner } from "./namespaces.ts";
export { createProcess } from "./process.ts";
export type { Ending, NodeProcess } from "./process.ts";
export { decodeSctp, encodeSctp } from "./raw/sctp-packet.ts";
export type { SctpPacket } from "./raw/sctp-packet.ts";
export { sweepLeftovers } from "./sweep.ts";
