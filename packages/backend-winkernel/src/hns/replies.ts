import { canonicalIP, ProxyError } from "@turnout/core/backend";
import { integer, list, open, optional, parseFolded, text } from "./shape.ts";

/** A subnet of the network that is on other hosts. */
export interface RemoteSubnet {
  /** CIDR of pods. */
  readonly prefix: string;
  /** The address of the host that has them. */
  readonly provider: string;
}

/** A network as HNS has it. */
export interface HnsNetwork {
  readonly id: string;
  readonly name: string;
  /** In lower case, e.g. `l2bridge`; "": HNS doesn't say, as of NAT networks. */
  readonly type: string;
  readonly remoteSubnets: readonly RemoteSubnet[];
}

/** An endpoint as HNS has it. */
export interface HnsEndpoint {
  readonly id: string;
  readonly name: string;
  readonly networkId: string;
  /** Canonical. */
  readonly addresses: readonly string[];
  /** Lower case with `-`; "": it has none. */
  readonly mac: string;
  readonly isRemote: boolean;
  /** "": it has none. */
  readonly provider: string;
}

/** One port of a load balancer. */
export interface HnsPortMapping {
  readonly protocol: number;
  readonly internalPort: number;
  readonly externalPort: number;
  readonly distribution: number;
  readonly flags: number;
}

/** A load balancer as HNS has it. */
export interface HnsLoadBalancer {
  readonly id: string;
  readonly endpointIds: readonly string[];
  /** "": none. */
  readonly sourceVip: string;
  /** Canonical. */
  readonly vips: readonly string[];
  readonly ports: readonly HnsPortMapping[];
  readonly flags: number;
}

/** HNS's version, e.g. 15.5. */
export interface HnsVersion {
  readonly major: number;
  readonly minor: number;
}

const U32 = integer(0, 0xffff_ffff);
const ID = text(/^\{?[0-9a-fA-F-]{36}\}?$/);
const IDS = list(ID);
const POLICY = open({ type: optional(text()), settings: optional((value): unknown => value) });
const NETWORK = open({ id: ID, name: optional(text()), type: optional(text()), policies: optional(list(POLICY)) });
const SUBNET = open({ destinationprefix: text(), provideraddress: text() });
const ENDPOINT = open({
  id: ID,
  name: optional(text()),
  // Of others there may be some without a network.
  hostcomputenetwork: optional(text(/^$|^\{?[0-9a-fA-F-]{36}\}?$/)),
  policies: optional(list(POLICY)),
  ipconfigurations: optional(list(open({ ipaddress: optional(text()) }))),
  macaddress: optional(text()),
  flags: optional(U32),
});
const PROVIDER = open({ provideraddress: text() });
const PORT_MAPPING = open({
  protocol: optional(U32),
  internalport: optional(U32),
  externalport: optional(U32),
  distributiontype: optional(U32),
  flags: optional(U32),
});
const LOAD_BALANCER = open({
  id: ID,
  hostcomputeendpoints: optional(list(ID)),
  sourcevip: optional(text()),
  frontendvips: optional(list(text())),
  portmappings: optional(list(PORT_MAPPING)),
  flags: optional(U32),
});
const VERSION = open({ major: U32, minor: U32 });
const REPLY = open({
  success: optional((value): boolean => value === true),
  error: optional(text()),
  output: optional((value): unknown => value),
});

/** Read the ids that HNS enumerates; of none at all it tells by an empty list or by nothing. @throws {ProxyError} `invalid_object`. */
export function readIds(json: string | undefined): readonly string[] {
  return json === undefined || json === "" ? [] : IDS(parseFolded(json, "ids"), "ids");
}

/** Read a network's properties. @throws {ProxyError} `invalid_object`. */
export function readNetwork(json: string): HnsNetwork {
  const { id, name = "", type = "", policies = [] } = NETWORK(parseFolded(json, "a network"), "network");
  const routes = policies.filter((policy) => policy.type?.toLowerCase() === "remotesubnetroute");
  const remoteSubnets = routes.map(({ settings }) => {
    const { destinationprefix, provideraddress } = SUBNET(settings, "network.RemoteSubnetRoute");
    return { prefix: destinationprefix, provider: canonical(provideraddress) };
  });
  return { id: guid(id), name, type: type.toLowerCase(), remoteSubnets };
}

/** Read an endpoint's properties. @throws {ProxyError} `invalid_object`. */
export function readEndpoint(json: string): HnsEndpoint {
  const found = ENDPOINT(parseFolded(json, "an endpoint"), "endpoint");
  const { id, name = "", hostcomputenetwork = "", policies = [], ipconfigurations = [], macaddress = "", flags = 0 } = found;
  const provider = policies.find((policy) => policy.type?.toLowerCase() === "provideraddress");
  return {
    id: guid(id),
    name,
    networkId: guid(hostcomputenetwork),
    addresses: ipconfigurations.flatMap(({ ipaddress }) => (ipaddress === undefined || ipaddress === "" ? [] : [canonical(ipaddress)])),
    mac: macaddress.toLowerCase().replaceAll(":", "-"),
    isRemote: (flags & 1) !== 0,
    provider:
      provider === undefined || (flags & 1) === 0 ? "" : canonical(PROVIDER(provider.settings, "endpoint.ProviderAddress").provideraddress),
  };
}

/** Read a load balancer's properties. @throws {ProxyError} `invalid_object`. */
export function readLoadBalancer(json: string): HnsLoadBalancer {
  const found = LOAD_BALANCER(parseFolded(json, "a load balancer"), "load balancer");
  const { id, hostcomputeendpoints = [], sourcevip = "", frontendvips = [], portmappings = [], flags = 0 } = found;
  return {
    id: guid(id),
    endpointIds: hostcomputeendpoints.map(guid),
    sourceVip: sourcevip === "" ? "" : canonical(sourcevip),
    vips: frontendvips.map(canonical),
    ports: portmappings.map((one) => ({
      protocol: one.protocol ?? 0,
      internalPort: one.internalport ?? 0,
      externalPort: one.externalport ?? 0,
      distribution: one.distributiontype ?? 0,
      flags: one.flags ?? 0,
    })),
    flags,
  };
}

/** Read what `HNSCall GET /globals/version` answers. @throws {ProxyError} `invalid_object`, or `tool_failed` with its error. */
export function readVersion(json: string): HnsVersion {
  const { success = false, error = "it gives no reason", output } = REPLY(parseFolded(json, "the version"), "version");
  if (!success) throw new ProxyError("tool_failed", `HNS doesn't tell its version: ${error}`);
  return VERSION(output, "version");
}

function guid(id: string): string {
  return id.replace(/[{}]/g, "").toLowerCase();
}

function canonical(address: string): string {
  return canonicalIP(address)?.text ?? address;
}
