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
