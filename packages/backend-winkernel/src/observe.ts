import { objectId } from "@turnout/core/backend";
import type { Observed } from "@turnout/core/backend";
import type { HnsEndpoint, HnsLoadBalancer } from "./hns/replies.ts";
import { byName } from "./objects.ts";
import { elsewhere } from "./render.ts";
import type { EndpointObject, LoadBalancerObject, SourceVipObject, WinkernelObject } from "./objects.ts";
import { keyOf, SOURCE_VIP_NAME } from "./view.ts";
import type { HnsView } from "./view.ts";

/** What a look is read with. */
export interface Reading {
  /** What was wanted where HNS has something of others that does as well: nothing is made for it. */
  readonly covered: ReadonlyMap<string, EndpointObject | SourceVipObject>;
  /** The host's own address in the family; "": unknown. */
  readonly ownAddress: string;
  /** The name of the endpoint that load balancers know by it. */
  readonly rootName: string;
}

/** Read what is ours out of a look at HNS. */
export function readView(view: HnsView, { covered, rootName, ownAddress }: Reading): Observed<WinkernelObject> {
  const objects = new Map<string, WinkernelObject>();
  const add = (object: WinkernelObject): void => void objects.set(objectId(object), object);
  for (const endpoint of view.endpoints.values()) {
    const object = endpointObject(endpoint, view);
    if (object !== undefined) add(object);
  }
  for (const object of covered.values()) if (view.localAt(object.key) !== undefined && !objects.has(objectId(object))) add(object);
  for (const ip of namedHere(view, rootName))
    if (!objects.has(`endpoint ${ip}`)) add({ kind: "endpoint", key: ip, isLocal: true, value: elsewhere(ip, view.network, ownAddress) });
  for (const balancer of view.balancers.values()) add(balancerObject(balancer, view, rootName));
  return { objects, lingering: [] };
}

/** Addresses of this host's endpoints that load balancers name. */
function namedHere(view: HnsView, rootName: string): ReadonlySet<string> {
  const ids = [...view.balancers.values()].flatMap(({ endpointIds }) => endpointIds);
  const named = [...new Set(ids)].flatMap((id) => view.endpoints.get(id) ?? []);
  return new Set(named.filter(({ isRemote, name }) => !isRemote && name !== rootName).flatMap((one) => view.addressOf(one) ?? []));
}

/** Undefined: it is the CNI's, or of the other family. */
function endpointObject(endpoint: HnsEndpoint, view: HnsView): WinkernelObject | undefined {
  const { name, isRemote, addresses, mac, provider, id } = endpoint;
  const ip = view.addressOf(endpoint);
  if (!isRemote) return ip !== undefined && name === SOURCE_VIP_NAME ? { kind: "source-vip", key: ip, value: mac } : undefined;
  if (ip === undefined && addresses.length > 0) return undefined;
  if (ip === undefined) return { kind: "endpoint", key: `id ${id}`, value: { mac, provider, odd: "no address" } };
  const odd = oddities(endpoint, ip, view);
  return { kind: "endpoint", key: ip, value: { mac, provider, ...(odd === "" ? {} : { odd }) } };
}

function oddities({ addresses }: HnsEndpoint, ip: string, view: HnsView): string {
  const remotes = view.remotesAt(ip).length;
  return [
    ...(addresses.length > 1 ? [`${addresses.length} addresses`] : []),
    ...(remotes > 1 ? [`${remotes} endpoints at the address`] : []),
    ...(view.localAt(ip) === undefined ? [] : ["this host has the address"]),
  ].join(", ");
}

/** A load balancer in the form in which it is rendered. */
export function balancerObject(balancer: HnsLoadBalancer, view: HnsView, rootName: string): LoadBalancerObject {
  const { ports, vips, flags, sourceVip, endpointIds } = balancer;
  const [port] = ports;
  const key = keyOf(balancer);
  const odd = [
    ...(ports.length > 1 ? [`${ports.length} ports`] : []),
    ...(vips.length > 1 ? [`${vips.length} addresses`] : []),
    ...(view.balancersAt(key).length > 1 ? ["another one at the same address"] : []),
  ].join(", ");
  return {
    kind: "loadbalancer",
    key,
    value: {
      endpoints: endpointIds.map((id) => endpointText(id, view, rootName)).sort(),
      port: port?.internalPort ?? 0,
      flags,
      portFlags: port?.flags ?? 0,
      distribution: port?.distributionType ?? 0,
      // Elsewhere nobody sends one, so what HNS may fill in is no difference.
      sourceVip: view.network.network === "overlay" ? sourceVip : "",
      ...(odd === "" ? {} : { odd }),
    },
  };
}

/** The address of an endpoint, or `@name`; one that is gone, or that another one stands for now, has none. */
function endpointText(id: string, view: HnsView, rootName: string): string {
  const endpoint = view.endpoints.get(id);
  if (endpoint === undefined) return `gone ${id}`;
  if (!endpoint.isRemote && endpoint.name === rootName) return byName(rootName);
  const ip = view.addressOf(endpoint);
  return ip !== undefined && view.resolve(ip)?.id === id ? ip : `stale ${id}`;
}
