/**
 * The winkernel backend's host in memory: an HNS as strict as what is known of the real one, and a packet's way through its load balancers.
 *
 * @packageDocumentation
 */
export { createFakeHost } from "./fake-host.ts";
export type { FakeHostOptions, WinkernelFakeHost } from "./fake-host.ts";
export { FakeHns } from "./fake-hns.ts";
export type { FakeHnsOptions } from "./fake-hns.ts";
export type { FakeEndpoint, FakeLoadBalancer, FakeNetwork } from "./properties.ts";
