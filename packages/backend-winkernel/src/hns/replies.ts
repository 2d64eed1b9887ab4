import { canonicalIP, ProxyError } from "@turnout/core/backend";
import { integer, list, open, optional, parseFolded, text } from "./shape.ts";
import type { Shape } from "./shape.ts";

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
  readonly distributionType: number;
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

const UINT32 = integer(0, 0xffff_ffff);
const FLAGS = optional(UINT32, 0);
const TEXT = optional(text(), "");
const ID = guid(text(/^\{?[0-9a-fA-F-]{36}\}?$/));
const IDS = list(ID);
const ADDRESS: Shape<string> = (value, at) => canonical(text()(value, at));
const NONE: readonly never[] = [];
const ANY: Shape<unknown> = (value) => value;
const POLICIES = optional(list(open({ type: TEXT, settings: ANY })), NONE);
const NETWORK = open({ id: ID, name: TEXT, type: TEXT, policies: POLICIES });
const SUBNET = open({ destinationPrefix: text(), providerAddress: ADDRESS });
const ENDPOINT = open({
  id: ID,
  name: TEXT,
  // Of others there may be some without a network.
  hostComputeNetwork: optional(guid(text(/^$|^\{?[0-9a-fA-F-]{36}\}?$/)), ""),
  policies: POLICIES,
  ipConfigurations: optional(list(open({ ipAddress: optional(ADDRESS, "") })), NONE),
  macAddress: TEXT,
  flags: FLAGS,
});
const PROVIDER = open({ providerAddress: ADDRESS });
const PORT_MAPPING = open({ protocol: FLAGS, internalPort: FLAGS, externalPort: FLAGS, distributionType: FLAGS, flags: FLAGS });
const LOAD_BALANCER = open({
  id: ID,
  hostComputeEndpoints: optional(IDS, NONE),
  sourceVIP: optional(ADDRESS, ""),
  frontendVIPs: optional(list(ADDRESS), NONE),
  portMappings: optional(list(PORT_MAPPING), NONE),
  flags: FLAGS,
});
const VERSION = open({ major: UINT32, minor: UINT32 });
const REPLY = open({ success: ANY, error: optional(text(), "it gives no reason"), output: ANY });

/** Read the ids that HNS enumerates; of none at all it tells by an empty list or by nothing. @throws {ProxyError} `invalid_object`. */
export function readIds(json: string | undefined): readonly string[] {
  return json === undefined || json === "" ? [] : IDS(parseFolded(json, "ids"), "ids");
}

/** Read a network's properties. @throws {ProxyError} `invalid_object`. */
export function readNetwork(json: string): HnsNetwork {
  const { id, name, type, policies } = NETWORK(parseFolded(json, "a network"), "network");
  const remoteSubnets = settingsOf("RemoteSubnetRoute", policies).map((settings) => {
    const { destinationPrefix, providerAddress } = SUBNET(settings, "network.RemoteSubnetRoute");
    return { prefix: destinationPrefix, provider: providerAddress };
  });
  return { id, name, type: type.toLowerCase(), remoteSubnets };
}

/** Read an endpoint's properties. @throws {ProxyError} `invalid_object`. */
export function readEndpoint(json: string): HnsEndpoint {
  const { id, name, hostComputeNetwork, policies, ipConfigurations, macAddress, flags } = ENDPOINT(
    parseFolded(json, "an endpoint"),
    "endpoint",
  );
  const isRemote = (flags & 1) !== 0;
  const [provider] = isRemote ? settingsOf("ProviderAddress", policies) : [];
  return {
    id,
    name,
    networkId: hostComputeNetwork,
    addresses: ipConfigurations.flatMap(({ ipAddress }) => (ipAddress === "" ? [] : [ipAddress])),
    mac: macAddress.toLowerCase().replaceAll(":", "-"),
    isRemote,
    provider: provider === undefined ? "" : PROVIDER(provider, "endpoint.ProviderAddress").providerAddress,
  };
}

/** Read a load balancer's properties. @throws {ProxyError} `invalid_object`. */
export function readLoadBalancer(json: string): HnsLoadBalancer {
  const found = LOAD_BALANCER(parseFolded(json, "a load balancer"), "load balancer");
  const { id, hostComputeEndpoints: endpointIds, sourceVIP: sourceVip, frontendVIPs: vips, portMappings: ports, flags } = found;
  return { id, endpointIds, sourceVip, vips, ports, flags };
}

/** Read what `HNSCall GET /globals/version` answers. @throws {ProxyError} `invalid_object`, or `tool_failed` with its error. */
export function readVersion(json: string): HnsVersion {
  const { success, error, output } = REPLY(parseFolded(json, "the version"), "version");
  if (success !== true) throw new ProxyError("tool_failed", `HNS doesn't tell its version: ${error}`);
  return VERSION(output, "version");
}

function settingsOf(type: string, policies: readonly { readonly type: string; readonly settings: unknown }[]): readonly unknown[] {
  return policies.filter((policy) => policy.type.toLowerCase() === type.toLowerCase()).map(({ settings }) => settings);
}

function guid(shape: Shape<string>): Shape<string> {
  return (value, at) => shape(value, at).replace(/[{}]/g, "").toLowerCase();
}

function canonical(address: string): string {
  return canonicalIP(address)?.text ?? address;
}
