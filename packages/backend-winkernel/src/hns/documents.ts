import { parseIP } from "@turnout/core/backend";
import { DISTRIBUTION, LB_FLAG, PORT_FLAG, PROTOCOL_NUMBER, REMOTE_ENDPOINT } from "./flags.ts";
import { closed, integer, list, oneOf, optional, such, text } from "./shape.ts";
import type { Shape } from "./shape.ts";

const GUID = text(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i);
const MAC = text(/^([0-9a-f]{2}-){5}[0-9a-f]{2}$/i);
const ADDRESS: Shape<string> = such(text(), (value) =>
  parseIP(value) === undefined ? `is ${JSON.stringify(value)}, not an address` : undefined,
);
const PORT = integer(1, 65_535);

/** Of the documents that are sent. */
export interface SchemaVersion {
  readonly Major: 2;
  readonly Minor: 0;
}

/** A load balancer as it is sent. */
export interface LoadBalancerSettings {
  readonly HostComputeEndpoints: readonly string[];
  readonly SourceVIP?: string;
  readonly FrontendVIPs?: readonly string[];
  readonly PortMappings: readonly {
    readonly Protocol: number;
    readonly InternalPort: number;
    readonly ExternalPort: number;
    readonly DistributionType?: number;
    readonly Flags?: number;
  }[];
  readonly SchemaVersion: SchemaVersion;
  readonly Flags?: number;
}

/** An endpoint as it is sent. */
export interface EndpointSettings {
  readonly Name?: string;
  readonly HostComputeNetwork: string;
  readonly IpConfigurations: readonly { readonly IpAddress: string }[];
  readonly MacAddress: string;
  readonly Flags?: number;
  readonly Policies?: readonly { readonly Type: string; readonly Settings: { readonly ProviderAddress: string } }[];
  readonly SchemaVersion: SchemaVersion;
}

/** What kube-proxy sends, whatever the version of Windows. */
export const SCHEMA_VERSION: SchemaVersion = { Major: 2, Minor: 0 };
const VERSION = closed({ Major: oneOf(SCHEMA_VERSION.Major), Minor: oneOf(SCHEMA_VERSION.Minor) });
const ALL_PORT_FLAGS = Object.values(PORT_FLAG).reduce((all, flag) => all | flag, 0);

const PORT_MAPPING = such(
  closed({
    Protocol: oneOf(...Object.values(PROTOCOL_NUMBER)),
    InternalPort: PORT,
    ExternalPort: PORT,
    DistributionType: optional(oneOf(DISTRIBUTION.client)),
    Flags: optional(integer(1, ALL_PORT_FLAGS)),
  }),
  ({ Flags: flags = 0 }) =>
    ((flags & PORT_FLAG.useMux) === 0) === ((flags & PORT_FLAG.preserveDip) === 0)
      ? undefined
      : "has UseMux or PreserveDIP without the other",
);

/** A load balancer as it is sent: exactly one port, one address or none, and never without endpoints. */
export const LOAD_BALANCER_SETTINGS: Shape<LoadBalancerSettings> = such(
  closed({
    HostComputeEndpoints: list(GUID, 1),
    SourceVIP: optional(ADDRESS),
    FrontendVIPs: optional(list(ADDRESS, 1, 1)),
    PortMappings: list(PORT_MAPPING, 1, 1),
    SchemaVersion: VERSION,
    Flags: optional(integer(1, LB_FLAG.dsr | LB_FLAG.ipv6)),
  }),
  ({ FrontendVIPs: vips, PortMappings: ports, Flags: flags = 0 }) => {
    const isIPv6 = (flags & LB_FLAG.ipv6) !== 0;
    if (vips !== undefined && (parseIP(vips[0] ?? "")?.family === "IPv6") !== isIPv6) return "has an address of the other family";
    const isNodePort = ((ports[0]?.Flags ?? 0) & PORT_FLAG.localRoutedVip) !== 0;
    return isNodePort === (vips === undefined) ? undefined : "has a node port with an address, or another port without one";
  },
);

const PROVIDER_POLICY = closed({ Type: oneOf("ProviderAddress"), Settings: closed({ ProviderAddress: ADDRESS }) });

/** An endpoint as it is sent: a remote one, or the one that has the source VIP. */
export const ENDPOINT_SETTINGS: Shape<EndpointSettings> = such(
  closed({
    Name: optional(text(/./)),
    HostComputeNetwork: GUID,
    IpConfigurations: list(closed({ IpAddress: ADDRESS }), 1, 1),
    MacAddress: MAC,
    Flags: optional(oneOf(REMOTE_ENDPOINT)),
    Policies: optional(list(PROVIDER_POLICY, 1, 1)),
    SchemaVersion: VERSION,
  }),
  ({ Flags: flags, Policies: policies }) =>
    flags === undefined && policies !== undefined ? "is local and has a provider address" : undefined,
);
