/**
 * What virtual and real servers are, and what may be done with them: all of it pure, so that what decides in a backend may use it.
 *
 * @packageDocumentation
 */
export * from "./model.ts";
export { partOf, PARTS } from "./parts.ts";
export { SERVICE_FLAG, operationObject, virtualServerName } from "./model.ts";
export type {
  IpvsListing,
  IpvsOperation,
  IpvsTimeouts,
  RealServer,
  RealServerKey,
  VirtualServer,
  VirtualServerCounts,
  VirtualServerKey,
  VirtualServerSettings,
} from "./model.ts";
export { mixed } from "./parts.ts";
