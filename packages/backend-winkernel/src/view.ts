import { ProxyError } from "@turnout/core/backend";
import type { IPFamily, Protocol } from "@turnout/core/backend";
import type { HnsClient } from "./hns/client.ts";
import { reported } from "./hns/error.ts";
import { LB_FLAG, PROTOCOL_NUMBER } from "./hns/flags.ts";
import type { HnsEndpoint, HnsLoadBalancer, HnsNetwork } from "./hns/replies.ts";
import { familyOfAddress, frontendKey } from "./objects.ts";
import { findNetwork, kindOf } from "./probe.ts";
import type { WinkernelFacts } from "./facts.ts";

/** The name of the endpoint that we make for the source address of an overlay. */
export const SOURCE_VIP_NAME = "turnout-source-vip";

/**
 * What HNS holds of our network in one family: read at once, and kept true by whoever changes something.
 *
 * Edges: HNS tells of no owner. Ours are the remote endpoints of the network, and all load balancers but those that name an endpoint of another
 * network: no CNI makes either. Endpoints of this host are the CNI's.
 */
export class HnsView {
  readonly networkId: string;
  readonly network: Pick<WinkernelFacts, "network" | "remoteSubnets">;
  readonly #family: IPFamily;
  readonly #endpoints = new Map<string, HnsEndpoint>();
  readonly #balancers = new Map<string, HnsLoadBalancer>();
  readonly #byAddress = new Index<HnsEndpoint>();
  readonly #byName = new Index<HnsEndpoint>();
  readonly #byKey = new Index<HnsLoadBalancer>();
  readonly #byEndpoint = new Index<HnsLoadBalancer>();

  private constructor(network: HnsNetwork, family: IPFamily, endpoints: readonly HnsEndpoint[], balancers: readonly HnsLoadBalancer[]) {
    const networkId = network.id;
    this.networkId = networkId;
    this.network = { network: kindOf(network) ?? "l2bridge", remoteSubnets: network.remoteSubnets };
    this.#family = family;
    const others = new Set(endpoints.filter((one) => one.networkId !== networkId).map(({ id }) => id));
    for (const endpoint of endpoints) if (endpoint.networkId === networkId) this.noteEndpoint(endpoint);
    for (const balancer of balancers) if (!balancer.endpointIds.some((id) => others.has(id))) this.noteBalancer(balancer);
  }

  /** Look at HNS. @throws {ProxyError} what it failed with, `not_found` where the network is gone. */
  static async read(client: HnsClient, name: string, family: IPFamily, signal: AbortSignal): Promise<HnsView> {
    const network = await findNetwork(client, name, signal);
    try {
      // Load balancers first: an endpoint that goes between the two looks is missing in the second then, and not taken for another network's.
      const balancers = await client.loadBalancers(signal);
      return new HnsView(network, family, await client.endpoints(signal), balancers);
    } catch (error) {
      throw reported(error, "HNS can't be asked", "its endpoints and load balancers");
    }
  }

  /** Our load balancers of this family by id. */
  get balancers(): ReadonlyMap<string, HnsLoadBalancer> {
    return this.#balancers;
  }

  /** Endpoints of the network, of whatever family. */
  get endpoints(): ReadonlyMap<string, HnsEndpoint> {
    return this.#endpoints;
  }

  noteEndpoint(endpoint: HnsEndpoint): void {
    this.forget(endpoint.id);
    this.#endpoints.set(endpoint.id, endpoint);
    for (const ip of endpoint.addresses) this.#byAddress.add(ip, endpoint);
    this.#byName.add(endpoint.name, endpoint);
  }

  noteBalancer(balancer: HnsLoadBalancer): void {
    if (((balancer.flags & LB_FLAG.ipv6) === 0) !== (this.#family === "IPv4")) return;
    this.forget(balancer.id);
    this.#balancers.set(balancer.id, balancer);
    this.#byKey.add(keyOf(balancer), balancer);
    for (const id of balancer.endpointIds) this.#byEndpoint.add(id, balancer);
  }

  forget(id: string): void {
    const [endpoint, balancer] = [this.#endpoints.get(id), this.#balancers.get(id)];
    this.#endpoints.delete(id);
    this.#balancers.delete(id);
    for (const ip of endpoint?.addresses ?? []) this.#byAddress.remove(ip, id);
    if (endpoint !== undefined) this.#byName.remove(endpoint.name, id);
    if (balancer !== undefined) this.#byKey.remove(keyOf(balancer), id);
    for (const one of balancer?.endpointIds ?? []) this.#byEndpoint.remove(one, id);
  }

  /** Those of another host at an address. */
  remotesAt(ip: string): readonly HnsEndpoint[] {
    return this.#byAddress.of(ip).filter(({ isRemote }) => isRemote);
  }

  /** The one of this host at an address. */
  localAt(ip: string): HnsEndpoint | undefined {
    return this.#byAddress.of(ip).find(({ isRemote }) => !isRemote);
  }

  /** The endpoint that an address, or `@name`, means: this host's own goes before another's. */
  resolve(address: string): HnsEndpoint | undefined {
    if (!address.startsWith("@")) return this.localAt(address) ?? this.remotesAt(address)[0];
    return this.#byName.of(address.slice(1)).find(({ isRemote }) => !isRemote);
  }

  /** An endpoint's address of this family: a pod's endpoint has one of each. */
  addressOf({ addresses }: HnsEndpoint): string | undefined {
    return addresses.find((ip) => familyOfAddress(ip) === this.#family);
  }

  /** Load balancers at a frontend. */
  balancersAt(key: string): readonly HnsLoadBalancer[] {
    return this.#byKey.of(key);
  }

  /** Load balancers that name an endpoint. */
  usersOf(id: string): readonly HnsLoadBalancer[] {
    return this.#byEndpoint.of(id);
  }
}

/** Finds things of HNS by something they have; each once, in the order in which they were noted. */
class Index<T extends { readonly id: string }> {
  readonly #things = new Map<string, Map<string, T>>();

  of(key: string): readonly T[] {
    return [...(this.#things.get(key)?.values() ?? [])];
  }

  add(key: string, thing: T): void {
    const known = this.#things.get(key) ?? new Map<string, T>();
    this.#things.set(key, known.set(thing.id, thing));
  }

  remove(key: string, id: string): void {
    const known = this.#things.get(key);
    known?.delete(id);
    if (known?.size === 0) this.#things.delete(key);
  }
}

const PROTOCOLS: ReadonlyMap<number, Protocol> = new Map(
  Object.entries(PROTOCOL_NUMBER).map(([name, number]) => [number, name as Protocol]),
);

/** Write the key of a load balancer that HNS has; one that we can't have made is told by its id. */
export function keyOf({ id, ports, vips }: HnsLoadBalancer): string {
  const [port] = ports;
  const protocol = PROTOCOLS.get(port?.protocol ?? 0);
  return port === undefined || protocol === undefined ? `id ${id}` : frontendKey({ protocol, vip: vips[0] ?? "", port: port.externalPort });
}

/** An error that says what is missing. */
export function missingEndpoint(addresses: readonly string[], object: string): ProxyError {
  return new ProxyError("not_found", `HNS has no endpoint of this host at ${addresses.join(", ")}`, {
    object,
    hint: "the CNI makes it with the pod; it is tried again",
  });
}
