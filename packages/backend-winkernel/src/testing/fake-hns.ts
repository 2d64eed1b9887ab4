import { parseCIDR, parseIP, cidrContains } from "@turnout/core/backend";
import { FaultSwitches } from "@turnout/conformance";
import type { EndpointSettings, LoadBalancerSettings } from "../hns/documents.ts";
import { HnsError } from "../hns/error.ts";
import { LB_FLAG } from "../hns/flags.ts";
import type { HnsHost, HnsKind, OwnKind } from "../hns/host.ts";
import type { HnsVersion } from "../hns/replies.ts";
import { hasFeature } from "../hns/version.ts";

const HRESULT = {
  networkNotFound: 0x803b0001,
  endpointNotFound: 0x803b0002,
  notFound: 0x80070490,
  portExists: 0x803b0013,
  alreadyExists: 0x800700b7,
  invalidReference: 0x803b001c,
  invalidIp: 0x803b001e,
  hasReferences: 0x803b002c,
  outOfMemory: 0x8007000e,
  rpcUnavailable: 0x800706ba,
  accessDenied: 0x80070005,
  notImplemented: 0x80004001,
  failed: 0x80004005,
} as const;

/** A network that the CNI made. */
export interface FakeNetwork {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  /** CIDRs of this host's pods. */
  readonly subnets: readonly string[];
  readonly remoteSubnets?: readonly { readonly prefix: string; readonly provider: string }[];
}

/** An endpoint as it was sent, whoever sent it. */
export interface FakeEndpoint {
  readonly id: string;
  readonly settings: EndpointSettings;
}

/** A load balancer as it was sent. */
export interface FakeLoadBalancer {
  readonly id: string;
  readonly settings: LoadBalancerSettings;
}

/** How this HNS is. */
export interface FakeHnsOptions {
  /** Default 15.5. */
  readonly version?: HnsVersion;
  /** What becomes of an endpoint that a load balancer names and somebody deletes: nobody knows, so both exist. Default: refused. */
  readonly deleteInUse?: "refused" | "allowed";
  /** More load balancers don't fit. Default: all do. */
  readonly loadBalancersMax?: number;
}

/**
 * HNS in memory: JSON in and JSON out, with the constraints that are known of the real one.
 *
 * Shape: only one load balancer has an address (or none), port, protocol and family; what it names has to be there, and what is named stays.
 * It answers with names of fields in the case of Microsoft's schema.
 */
export class FakeHns implements HnsHost {
  readonly networks: FakeNetwork[] = [];
  readonly endpoints: Map<string, FakeEndpoint> = new Map();
  readonly balancers: Map<string, FakeLoadBalancer> = new Map();
  readonly faults: FaultSwitches = new FaultSwitches();
  readonly #options: Required<FakeHnsOptions>;
  #nextId = 1;
  #written = 0;
  #downCalls = 0;
  #deletesToFail = 0;
  #isRehydrated = false;
  /** Called when a call has changed something. */
  onChange: (() => void) | undefined;

  constructor({
    version = { major: 15, minor: 5 },
    deleteInUse = "refused",
    loadBalancersMax = Number.POSITIVE_INFINITY,
  }: FakeHnsOptions = {}) {
    this.#options = { version, deleteInUse, loadBalancersMax };
  }

  /** How many things were made, changed or removed through calls. */
  get written(): number {
    return this.#written;
  }

  /** Have the next calls find nobody. */
  beDown(calls: number): void {
    this.#downCalls = calls;
  }

  /** Have the next deletions of load balancers fail, as those of Windows Server 2019 do at times. */
  failDeletes(count: number): void {
    this.#deletesToFail = count;
  }

  /** The service starts again: with its load balancers, which it then tells of in other words, or without. */
  restart(balancers: "kept" | "lost"): void {
    this.#isRehydrated = balancers === "kept";
    if (balancers === "lost") this.balancers.clear();
  }

  /** Make an endpoint as the CNI does. */
  addEndpoint(settings: EndpointSettings): string {
    const id = this.#newId();
    this.endpoints.set(id, { id, settings });
    return id;
  }

  /** Make a load balancer as another program does, whatever is in it. */
  addBalancer(settings: LoadBalancerSettings): string {
    const id = this.#newId();
    this.balancers.set(id, { id, settings });
    return id;
  }

  version(): Promise<string> {
    return this.#answer(() => {
      const { major, minor } = this.#options.version;
      return JSON.stringify({ Success: true, Output: { Major: major, Minor: minor } });
    });
  }

  list(kind: HnsKind): Promise<readonly string[]> {
    return this.#answer(() => {
      switch (kind) {
        case "network":
          return this.networks.map(networkProperties);
        case "endpoint":
          return [...this.endpoints.values()].map(endpointProperties);
        case "loadBalancer":
          return [...this.balancers.values()].map(balancerProperties);
      }
    });
  }

  createEndpoint(networkId: string, settings: string): Promise<string> {
    return this.#change(settings, () => {
      const endpoint = { id: this.#newId(), settings: this.#checkedEndpoint(settings, networkId) };
      this.endpoints.set(endpoint.id, endpoint);
      return endpointProperties(endpoint);
    });
  }

  createLoadBalancer(settings: string): Promise<string> {
    return this.#change(settings, () => {
      const balancer = { id: this.#newId(), settings: this.#checkedBalancer(settings, undefined) };
      if (this.balancers.size >= this.#options.loadBalancersMax) throw new HnsError(HRESULT.outOfMemory, "no more load balancers fit");
      this.balancers.set(balancer.id, balancer);
      return balancerProperties(balancer);
    });
  }

  modifyLoadBalancer(id: string, settings: string): Promise<string> {
    const { version } = this.#options;
    return this.#change(settings, () => {
      const known = this.balancers.get(id);
      if (known === undefined) throw new HnsError(HRESULT.notFound, "Element not found.");
      // 15.4 says yes and does nothing (kubernetes/kubernetes#131466).
      if (version.major === 15 && version.minor === 4) return balancerProperties(known);
      if (!hasFeature(version, "modifyLoadBalancer")) throw new HnsError(HRESULT.notImplemented, "Not implemented");
      const balancer = { id, settings: this.#checkedBalancer(settings, id) };
      this.balancers.set(id, balancer);
      return balancerProperties(balancer);
    });
  }

  remove(kind: OwnKind, id: string): Promise<void> {
    const known = kind === "endpoint" ? this.endpoints.get(id) : this.balancers.get(id);
    return this.#change(JSON.stringify(known?.settings ?? {}), () => {
      if (kind === "endpoint") return this.#removeEndpoint(id);
      if (this.#deletesToFail > 0) {
        this.#deletesToFail--;
        throw new HnsError(HRESULT.failed, "Unspecified error");
      }
      if (!this.balancers.delete(id)) throw new HnsError(HRESULT.notFound, "Element not found.");
    });
  }

  async close(): Promise<void> {
    // Nothing is under way.
  }

  #removeEndpoint(id: string): void {
    if (!this.endpoints.has(id)) throw new HnsError(HRESULT.endpointNotFound, "The endpoint was not found.");
    const isNamed = [...this.balancers.values()].some(({ settings }) => settings.HostComputeEndpoints.includes(id));
    if (isNamed && this.#options.deleteInUse === "refused") throw new HnsError(HRESULT.hasReferences, "The entity has references.");
    this.endpoints.delete(id);
  }

  #checkedEndpoint(json: string, networkId: string): EndpointSettings {
    const settings = JSON.parse(json) as EndpointSettings;
    const network = this.networks.find(({ id }) => id === networkId);
    if (network === undefined || settings.HostComputeNetwork !== networkId)
      throw new HnsError(HRESULT.networkNotFound, "The network was not found.");
    const ip = parseIP(settings.IpConfigurations[0]?.IpAddress ?? "");
    const isInside = network.subnets.some((subnet) => {
      const cidr = parseCIDR(subnet);
      return ip !== undefined && cidr !== undefined && cidrContains(cidr, ip);
    });
    if (settings.Flags === undefined && !isInside)
      throw new HnsError(HRESULT.invalidIp, "The IP address is not in a subnet of the network.");
    return settings;
  }

  /** @param self the one that is changed */
  #checkedBalancer(json: string, self: string | undefined): LoadBalancerSettings {
    const settings = JSON.parse(json) as LoadBalancerSettings;
    if (settings.HostComputeEndpoints.length === 0)
      throw new HnsError(HRESULT.invalidReference, "The reference is invalid in the JSON document. A Reference is required");
    if (settings.HostComputeEndpoints.some((id) => !this.endpoints.has(id)))
      throw new HnsError(HRESULT.endpointNotFound, "The endpoint was not found.");
    const twin = [...this.balancers.values()].find((one) => one.id !== self && identityOf(one.settings) === identityOf(settings));
    if (twin !== undefined)
      throw new HnsError(this.#isRehydrated ? HRESULT.alreadyExists : HRESULT.portExists, "The specified port already exists.");
    return settings;
  }

  #answer<T>(work: () => T): Promise<T> {
    try {
      this.#refuseWhileDown();
      return Promise.resolve(work());
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** A call is done or it isn't; its answer may be lost. */
  #change<T>(change: string, work: () => T): Promise<T> {
    return this.#answer(() => {
      if (this.faults.isRefused(change)) throw new HnsError(HRESULT.invalidIp, "The IP address is invalid.");
      const when = this.faults.next(change);
      const lost = new HnsError(HRESULT.rpcUnavailable, "The RPC server is unavailable.");
      if (when === "before" || when === "during") throw lost;
      const result = work();
      this.#written++;
      this.onChange?.();
      if (when === "after") throw lost;
      return result;
    });
  }

  #refuseWhileDown(): void {
    if (this.#downCalls <= 0) return;
    this.#downCalls--;
    throw new HnsError(HRESULT.rpcUnavailable, "The RPC server is unavailable.");
  }

  #newId(): string {
    return `00000000-0000-4000-8000-${(this.#nextId++).toString(16).padStart(12, "0")}`;
  }
}

/** What only one load balancer can have. */
export function identityOf({ FrontendVIPs: [vip = "none"] = [], PortMappings: [port], Flags: flags = 0 }: LoadBalancerSettings): string {
  return `${(flags & LB_FLAG.ipv6) === 0 ? "IPv4" : "IPv6"} ${port?.Protocol} ${vip} ${port?.ExternalPort}`;
}

/** What HNS tells of a network. */
function networkProperties({ id, name, type, subnets, remoteSubnets = [] }: FakeNetwork): string {
  return JSON.stringify({
    ID: id.toUpperCase(),
    Name: name,
    ...(type === "NAT" ? {} : { Type: type }),
    Policies: remoteSubnets.map(({ prefix, provider }) => ({
      Type: "RemoteSubnetRoute",
      Settings: {
        DestinationPrefix: prefix,
        IsolationId: 4096,
        ProviderAddress: provider,
        DistributedRouterMacAddress: "00-15-5d-00-00-01",
      },
    })),
    Ipams: [{ Type: "Static", Subnets: subnets.map((prefix) => ({ IpAddressPrefix: prefix })) }],
    MacPool: {},
    Dns: {},
    Health: { Extra: {} },
    SchemaVersion: { Major: 2, Minor: 0 },
  });
}

/** What HNS tells of an endpoint, in the case of Microsoft's schema page. */
function endpointProperties({ id, settings }: FakeEndpoint): string {
  const { IpConfigurations, ...others } = settings;
  const addresses = IpConfigurations.map(({ IpAddress }) => ({ IPAddress: IpAddress, PrefixLength: 24 }));
  return JSON.stringify({ Id: id, ...others, IPConfigurations: addresses, Dns: {}, Health: { Extra: {} } });
}

/** What HNS tells of a load balancer. */
function balancerProperties({ id, settings }: FakeLoadBalancer): string {
  return JSON.stringify({ ID: id, ...settings });
}
