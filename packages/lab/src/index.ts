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
export { startClusterApi } from "./cluster-api.ts";
export type { ClusterApi } from "./cluster-api.ts";
export { createCluster } from "./cluster.ts";
export type { Cluster, ClusterOptions, NodePlace, Place, SpawnOptions } from "./cluster.ts";
export { playGuestChecks } from "./guest/checks.ts";
export type { GuestChecks, GuestCheckReport } from "./guest/checks.ts";
export { describeGuest } from "./guest/describe-guest.ts";
export type { DescribeGuestOptions } from "./guest/describe-guest.ts";
export { IPVS_MODULES } from "./guest/modules.ts";
export { nodeCommand, runInGuest } from "./guest/run-in-guest.ts";
export type { GuestOptions, GuestResult } from "./guest/run-in-guest.ts";
export { nodeManifests, serviceCIDRManifest, serviceManifest, sliceManifests } from "./manifests.ts";
export type { EndpointManifest, PortManifest, ServiceManifest } from "./manifests.ts";
export { sweepLeftovers } from "./namespaces.ts";
export { decodeSctp, encodeSctp } from "./raw/sctp-packet.ts";
export type { SctpPacket } from "./raw/sctp-packet.ts";
