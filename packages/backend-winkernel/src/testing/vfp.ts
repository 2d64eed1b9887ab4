import { familyOf, hostPort } from "@turnout/core";
import type { IPFamily } from "@turnout/core/backend";
import type { Packet, Trace } from "@turnout/conformance";
import type { LoadBalancerSettings } from "../hns/documents.ts";
import { DISTRIBUTION, LB_FLAG, PROTOCOL_NUMBER } from "../hns/flags.ts";
import type { FakeHns } from "./fake-hns.ts";
import type { FakeLoadBalancer } from "./properties.ts";

/** What is balanced with, besides HNS's objects. */
export interface SwitchPort {
  readonly hns: FakeHns;
  /** Addresses of the host, but for loopback ones. */
  readonly hostAddresses: readonly string[];
  /** In [0, 1). */
  readonly random: () => number;
}

/**
 * Follow a packet through the load balancers that the virtual switch has from HNS.
 *
 * Shape: the host's own packets don't come by. A load balancer for the address goes before one for node ports. By source IP the same client gets
 * the same endpoint as long as the list is the same; otherwise any. With direct server return the endpoint sees the client, else this node.
 * Edges: none of it was seen on a real Windows node; docs/backends/winkernel.md says what it stands on.
 */
export function follow(packet: Packet, { hns, hostAddresses, random }: SwitchPort): Trace {
  const { destination, port, protocol, link, source, family } = packet;
  const where = `${protocol} ${hostPort(destination, port)}`;
  if (link === "") return { is: "pass", path: ["the host's own packets don't come by the switch ports"] };
  const isWanted = (one: FakeLoadBalancer): boolean => isFor(one.settings, packet);
  const candidates = [...hns.balancers.values()].filter(isWanted);
  const balancer =
    candidates.find(({ settings }) => settings.FrontendVIPs?.[0] === destination) ??
    candidates.find(({ settings }) => settings.FrontendVIPs === undefined && hostAddresses.includes(destination));
  if (balancer === undefined) return { is: "pass", path: [`no load balancer for ${where}`] };
  const { HostComputeEndpoints: ids, PortMappings: ports, Flags: flags = 0 } = balancer.settings;
  const [mapping] = ports;
  const isFixed = mapping?.DistributionType === DISTRIBUTION.client;
  const chosen = ids[isFixed ? hashOf(source) % ids.length : Math.floor(random() * ids.length)] ?? "";
  const addresses = hns.endpoints.get(chosen)?.settings.IpConfigurations.map(({ IpAddress }) => IpAddress) ?? [];
  const endpoint = addresses.find((ip) => familyOf(ip) === family);
  const path = [`load balancer ${balancer.id} for ${where}`, `endpoint ${chosen} of ${ids.length}`];
  if (endpoint === undefined) return { is: "drop", path: [...path, "which is gone"] };
  return { is: "forward", endpoint: hostPort(endpoint, mapping?.InternalPort ?? 0), masquerade: (flags & LB_FLAG.dsr) === 0, path };
}

function isFor({ PortMappings: [mapping], Flags: flags = 0 }: LoadBalancerSettings, { protocol, port, family }: Packet): boolean {
  const own: IPFamily = (flags & LB_FLAG.ipv6) === 0 ? "IPv4" : "IPv6";
  return mapping?.Protocol === PROTOCOL_NUMBER[protocol] && mapping.ExternalPort === port && own === family;
}

/** Any that spreads will do: which one VFP has is not known. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return hash >>> 8;
}
