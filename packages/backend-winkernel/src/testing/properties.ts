import type { EndpointSettings, LoadBalancerSettings } from "../hns/documents.ts";

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

/** What HNS tells of a network. */
export function networkProperties({ id, name, type, subnets, remoteSubnets = [] }: FakeNetwork): string {
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
export function endpointProperties({ id, settings }: FakeEndpoint): string {
  const { IpConfigurations, ...others } = settings;
  const addresses = IpConfigurations.map(({ IpAddress }) => ({ IPAddress: IpAddress, PrefixLength: 24 }));
  return JSON.stringify({ Id: id, ...others, IPConfigurations: addresses, Dns: {}, Health: { Extra: {} } });
}

/** What HNS tells of a load balancer. */
export function balancerProperties({ id, settings }: FakeLoadBalancer): string {
  return JSON.stringify({ ID: id, ...settings });
}
