/**
 * IPVS, the kernel's load balancer: virtual servers and real servers over generic netlink. What they are: `@turnout/host/ipvs/model`; the fake:
 * `@turnout/fakes/ipvs`.
 *
 * @packageDocumentation
 */
export { createIpvs } from "./ipvs.ts";
export type { Ipvs } from "./ipvs.ts";
export type { IpvsSummary } from "./summary.ts";
export { operationError, timeoutsError } from "./errors.ts";
