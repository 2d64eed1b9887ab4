/**
 * The iptables backend's host in memory: iptables and ip6tables in both variants and a kernel as strict as the real ones, and a packet's way
 * through them.
 *
 * @packageDocumentation
 */
export { createFakeHost } from "./fake-host.ts";
export type { IptablesFakeHost } from "./fake-host.ts";
