/**
 * The ipvs backend's host in memory: IPVS, ipset, iptables, addresses and a kernel as strict as the real ones, and a packet's way through them.
 *
 * @packageDocumentation
 */
export { createFakeHost } from "./fake-host.ts";
export type { IpvsFakeHost } from "./fake-host.ts";
