/**
 * Hosts in memory: a Linux host on which nftables, iptables, ipset or IPVS run, for the conformance kit and for tests.
 *
 * @packageDocumentation
 */
export { LinuxFakeHost } from "./host/linux-fake-host.ts";
export type { FollowOptions } from "./host/linux-fake-host.ts";
