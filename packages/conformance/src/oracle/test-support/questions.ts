import type { Capability, IPFamily, Protocol } from "@turnout/core";
import { abilitiesOf } from "@turnout/core";
import type { OracleObject, OracleWorld } from "../oracle-world.ts";
import type { Packet } from "../packet.ts";
import { REFERENCE_VARIANTS } from "../reference-variants.ts";
import { verdictOf } from "../verdict-of.ts";
import { rawNode, rawService, rawServiceCIDR, rawSlice } from "@turnout/core/testing";
import type { EndpointShort, RawObject } from "@turnout/core/testing";

/** Make a world to ask about: node1 (172.18.0.1) tells pods by the cluster range 10.1.0.0/16, its backend can do everything. */
export function worldOf(objects: readonly OracleObject[], changes: Partial<OracleWorld> = {}): OracleWorld {
  return {
    objects,
    nodeName: "node1",
    settings: {
      masqueradeAll: false,
      masqueradeBit: 14,
      detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00:1::/32"] },
      nodePortAddresses: undefined,
    },
    hostAddresses: { IPv4: ["127.0.0.1", "172.18.0.1", "192.168.7.1"], IPv6: ["::1", "fd00:18::1"] },
    nodePortAddressesDefault: ["primary"],
    capabilities: capabilitiesWithout(),
    variants: REFERENCE_VARIANTS,
    ...changes,
  };
}

/** All capabilities but these. */
export function capabilitiesWithout(...missing: readonly Capability[]): OracleWorld["capabilities"] {
  return Object.fromEntries(
    Object.keys(abilitiesOf({}).capabilities).map((name) => [name, missing.some((one) => one === name) ? "not here" : true]),
  ) as OracleWorld["capabilities"];
}

/** Who sends, and by which link it comes in. */
const SENDERS: Readonly<Record<string, readonly [source: string, link: string]>> = {
  pod: ["10.1.1.9", "veth9"],
  farPod: ["10.1.2.9", "eth0"],
  host: ["172.18.0.1", ""],
  client: ["203.0.113.1", "eth0"],
  unowned: ["203.0.113.200", "eth0"],
};

/** Make a packet of a sender by name, or by address (from eth0), to `address port` over TCP. */
export function packetOf(
  from: string,
  to: string,
  changes: { readonly protocol?: Protocol; readonly family?: IPFamily; readonly link?: string } = {},
): Packet {
  const [destination = "", port = "80"] = to.split(" ");
  const [source, link] = SENDERS[from] ?? [from, "eth0"];
  return {
    family: destination.includes(":") ? "IPv6" : "IPv4",
    protocol: "TCP",
    source,
    destination,
    port: Number(port),
    link,
    ...changes,
  };
}

/** Ask what becomes of a packet, in short: `reject`, `drop`, `pass`, or the endpoints that may answer, each with `*` when masqueraded. */
export function fateOf(world: OracleWorld, packet: Packet): string {
  const verdict = verdictOf(world, packet);
  if (verdict.is !== "forward") return verdict.is;
  return verdict.answers.map(({ endpoint, masquerade }) => `${endpoint.replace(/:8080$/, "")}${masquerade ? "*" : ""}`).join(" ");
}

/** An endpoint on node1. */
export const HERE: EndpointShort = { ip: "10.1.1.1", node: "node1" };
/** An endpoint on node2. */
export const THERE: EndpointShort = { ip: "10.1.2.1", node: "node2" };
/** Conditions of an endpoint that shuts down in an orderly way. */
export const LEAVING = { ready: false, serving: true, terminating: true } as const;
/** Where {@link web} answers. */
export const CLUSTER_IP = "10.96.0.1 80";
/** Where {@link web} answers. */
export const EXTERNAL_IP = "198.51.100.1 80";
/** Where {@link web} answers. */
export const BALANCED_IP = "198.51.100.2 80";

/** A world with one Service in all ways, by default with an endpoint on each node; fields of `spec` replace its own. */
export function web(spec: RawObject = {}, endpoints: readonly EndpointShort[] = [HERE, THERE]): OracleWorld {
  const ways: RawObject = {
    type: "LoadBalancer",
    externalIPs: ["198.51.100.1"],
    ports: [{ name: "http", port: 80, protocol: "TCP", nodePort: 30_080 }],
  };
  return worldOf([
    rawNode("node1", { zone: "a", addresses: ["172.18.0.1", "fd00:18::1"], podCIDRs: ["10.1.1.0/24"] }),
    rawServiceCIDR("main", ["10.96.0.0/16"]),
    rawService("web", { ...ways, ...spec }, { ingress: [{ ip: "198.51.100.2" }] }),
    rawSlice("web", endpoints),
  ]);
}

/** Ask what becomes of a sender's packet, as {@link fateOf}. */
export function fate(world: OracleWorld, from: string, to: string): string {
  return fateOf(world, packetOf(from, to));
}
