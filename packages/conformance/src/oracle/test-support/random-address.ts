import type { IPFamily } from "@turnout/core";
import { pickOne } from "@turnout/core/testing";

/** Says the next number in [0, 1). */
export type Random = () => number;

type ByFamily<T> = Readonly<Record<IPFamily, readonly T[]>>;

/** Cluster IPs the Services share. */
export const CLUSTER_IPS: ByFamily<string> = {
  IPv4: ["10.96.0.1", "10.96.0.2", "10.96.0.3"],
  IPv6: ["fd00:96::1", "fd00:96::2", "fd00:96::3"],
};
/** External and load-balancer IPs; the last ones are somebody else's already: a cluster IP, an address of the host, pods. */
export const EXTERNAL_IPS: ByFamily<string> = {
  IPv4: ["198.51.100.1", "198.51.100.2", "198.51.100.1", "10.96.0.2", "172.18.0.1", "10.1.1.2", "10.1.2.1"],
  IPv6: ["fd00:198::1", "fd00:198::2", "fd00:198::1", "fd00:96::2", "fd00:18::1", "fd00:1:1::2", "fd00:1:2::1"],
};
const BAD_ADDRESSES: readonly unknown[] = [
  "127.0.0.1",
  "::1",
  "224.0.0.1",
  "fe80::1",
  "300.1.1.1",
  "",
  "web",
  7,
  null,
  "0.0.0.0",
  "198.51.100.1/32",
];
/** Other ways to write an address above. */
const ODD_ADDRESSES: readonly string[] = ["198.051.100.001", "::ffff:198.51.100.2", "FD00:198:0::1", "010.96.000.1", "fd00:96:0:0::2"];
/** What is on the links of the host. */
export const HOST_ADDRESSES: ByFamily<string> = {
  IPv4: ["127.0.0.1", "172.18.0.1", "192.168.7.1"],
  IPv6: ["::1", "fd00:18::1", "fd00:7::1"],
};
/** Addresses endpoints have; the last is the host itself. */
export const POD_IPS: ByFamily<string> = {
  IPv4: ["10.1.1.1", "10.1.1.2", "10.1.2.1", "10.1.2.2", "172.18.0.1"],
  IPv6: ["fd00:1:1::1", "fd00:1:1::2", "fd00:1:2::1", "fd00:1:2::2", "fd00:18::1"],
};
/** Whoever comes from elsewhere. */
export const CLIENTS: ByFamily<string> = {
  IPv4: ["203.0.113.1", "203.0.113.200", "172.18.0.2"],
  IPv6: ["fd00:203::1", "fd00:203::f00", "fd00:18::2"],
};
/** Draw an address of a list; sometimes one that is oddly written, or none at all. */
export function randomAddress(list: readonly string[], badShare: number, random: Random): unknown {
  if (random() < badShare) return pickOne(BAD_ADDRESSES, random);
  return random() < badShare ? pickOne(ODD_ADDRESSES, random) : pickOne(list, random);
}
