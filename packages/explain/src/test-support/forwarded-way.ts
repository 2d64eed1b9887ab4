import type { HookedWay } from "../ways/hooked-way.ts";

/** The way of a client's packet to a load-balancer address, by eth0, to a pod of this node by veth1. */
export const FORWARDED: HookedWay = {
  packet: { family: "IPv4", protocol: "TCP", source: "203.0.113.1", destination: "198.51.100.1", port: 80, device: "eth0" },
  endpoint: { ip: "10.1.1.1", port: 8080, nodeName: "n1", isLocal: true, masquerade: false },
  outDevice: "veth1",
  backDevice: "eth0",
  isTranslated: true,
  markBit: 0,
  isLocal: () => false,
  isInSet: () => false,
};
