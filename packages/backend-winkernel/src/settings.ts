import { SCHEMA_VERSION } from "./hns/documents.ts";
import type { EndpointSettings, LoadBalancerSettings } from "./hns/documents.ts";
import { DISTRIBUTION, PROTOCOL_NUMBER, REMOTE_ENDPOINT } from "./hns/flags.ts";
import type { HnsLoadBalancer } from "./hns/replies.ts";
import { readFrontend } from "./objects.ts";
import type { EndpointObject, LoadBalancerObject, SourceVipObject } from "./objects.ts";
import { SOURCE_VIP_NAME } from "./view.ts";

/** What HNS is sent for a load balancer that names these endpoints; zeroes and what is empty are left out, as kube-proxy does. */
export function balancerSettings({ key, value }: LoadBalancerObject, endpointIds: readonly string[]): LoadBalancerSettings {
  const { protocol, vip, port } = readFrontend(key);
  const { flags, portFlags, distribution, sourceVip } = value;
  return {
    HostComputeEndpoints: endpointIds,
    ...(sourceVip === "" ? {} : { SourceVIP: sourceVip }),
    ...(vip === "" ? {} : { FrontendVIPs: [vip] }),
    PortMappings: [
      {
        Protocol: PROTOCOL_NUMBER[protocol],
        InternalPort: value.port,
        ExternalPort: port,
        ...(distribution === DISTRIBUTION.client ? { DistributionType: DISTRIBUTION.client } : {}),
        ...(portFlags === 0 ? {} : { Flags: portFlags }),
      },
    ],
    SchemaVersion: SCHEMA_VERSION,
    ...(flags === 0 ? {} : { Flags: flags }),
  };
}

/** What HNS is sent for an endpoint of another host. */
export function remoteSettings({ key, value: { mac, provider } }: EndpointObject, networkId: string): EndpointSettings {
  return {
    HostComputeNetwork: networkId,
    IpConfigurations: [{ IpAddress: key }],
    MacAddress: mac,
    Flags: REMOTE_ENDPOINT,
    ...(provider === "" ? {} : { Policies: [{ Type: "ProviderAddress", Settings: { ProviderAddress: provider } }] }),
    SchemaVersion: SCHEMA_VERSION,
  };
}

/** What HNS is sent for the endpoint that has the source address of an overlay. */
export function sourceVipSettings({ key, value: mac }: SourceVipObject, networkId: string): EndpointSettings {
  return {
    Name: SOURCE_VIP_NAME,
    HostComputeNetwork: networkId,
    IpConfigurations: [{ IpAddress: key }],
    MacAddress: mac,
    SchemaVersion: SCHEMA_VERSION,
  };
}

/** What would make a load balancer that HNS has, with other endpoints. */
export function settingsOf({ vips, ports, flags, sourceVip }: HnsLoadBalancer, endpointIds: readonly string[]): LoadBalancerSettings {
  return {
    HostComputeEndpoints: endpointIds,
    ...(sourceVip === "" ? {} : { SourceVIP: sourceVip }),
    ...(vips.length === 0 ? {} : { FrontendVIPs: vips }),
    PortMappings: ports.map((port) => ({
      Protocol: port.protocol,
      InternalPort: port.internalPort,
      ExternalPort: port.externalPort,
      ...(port.distributionType === 0 ? {} : { DistributionType: port.distributionType }),
      ...(port.flags === 0 ? {} : { Flags: port.flags }),
    })),
    SchemaVersion: SCHEMA_VERSION,
    ...(flags === 0 ? {} : { Flags: flags }),
  };
}

/** Tell whether HNS has a load balancer as it was sent; a source address that was not sent is HNS's own affair. */
export function isAsSent(found: HnsLoadBalancer, sent: LoadBalancerSettings): boolean {
  const sourceVip = sent.SourceVIP === undefined ? "" : found.sourceVip;
  const own = settingsOf({ ...found, sourceVip }, [...found.endpointIds].sort());
  return JSON.stringify(own) === JSON.stringify({ ...sent, HostComputeEndpoints: [...sent.HostComputeEndpoints].sort() });
}
