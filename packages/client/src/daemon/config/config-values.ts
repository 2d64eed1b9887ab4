import type { Plain } from "@turnout/core";

/** How much is logged from files of a name. */
export interface VModuleItem {
  /** A base name without its suffix, or a glob pattern of it. */
  readonly filePattern: string;
  readonly verbosity: number;
}

/** KubeProxyConfiguration v1alpha1 as flat paths, and Turnout's section `turnout`; durations are in milliseconds. */
export interface ConfigValues {
  readonly featureGates: Readonly<Record<string, boolean>>;
  readonly "clientConnection.kubeconfig": string;
  readonly "clientConnection.acceptContentTypes": string;
  readonly "clientConnection.contentType": string;
  readonly "clientConnection.qps": number;
  readonly "clientConnection.burst": number;
  readonly "logging.format": string;
  readonly "logging.flushFrequency": number;
  readonly "logging.verbosity": number;
  readonly "logging.vmodule": readonly VModuleItem[];
  readonly "logging.options.text.splitStream": boolean;
  readonly "logging.options.text.infoBufferSize": string;
  readonly "logging.options.json.splitStream": boolean;
  readonly "logging.options.json.infoBufferSize": string;
  readonly hostnameOverride: string;
  readonly bindAddress: string;
  readonly healthzBindAddress: string;
  readonly metricsBindAddress: string;
  readonly bindAddressHardFail: boolean;
  readonly enableProfiling: boolean;
  readonly showHiddenMetricsForVersion: string;
  readonly mode: string;
  readonly "iptables.masqueradeBit": number;
  readonly "iptables.masqueradeAll": boolean;
  readonly "iptables.localhostNodePorts": boolean;
  readonly "iptables.syncPeriod": number;
  readonly "iptables.minSyncPeriod": number;
  readonly "ipvs.syncPeriod": number;
  readonly "ipvs.minSyncPeriod": number;
  readonly "ipvs.scheduler": string;
  readonly "ipvs.excludeCIDRs": readonly string[];
  readonly "ipvs.strictARP": boolean;
  readonly "ipvs.tcpTimeout": number;
  readonly "ipvs.tcpFinTimeout": number;
  readonly "ipvs.udpTimeout": number;
  readonly "nftables.masqueradeBit": number;
  readonly "nftables.masqueradeAll": boolean;
  readonly "nftables.syncPeriod": number;
  readonly "nftables.minSyncPeriod": number;
  readonly "winkernel.networkName": string;
  readonly "winkernel.sourceVip": string;
  readonly "winkernel.rootHnsEndpointName": string;
  readonly "winkernel.enableDSR": boolean;
  readonly "winkernel.forwardHealthCheckVip": boolean;
  readonly windowsRunAsService: boolean;
  readonly detectLocalMode: string;
  readonly "detectLocal.bridgeInterface": string;
  readonly "detectLocal.interfaceNamePrefix": string;
  readonly clusterCIDR: string;
  readonly nodePortAddresses: readonly string[];
  readonly oomScoreAdj: number;
  readonly "conntrack.maxPerCore": number;
  readonly "conntrack.min": number;
  readonly "conntrack.tcpEstablishedTimeout": number;
  readonly "conntrack.tcpCloseWaitTimeout": number;
  readonly "conntrack.tcpBeLiberal": boolean;
  readonly "conntrack.udpTimeout": number;
  readonly "conntrack.udpStreamTimeout": number;
  readonly configSyncPeriod: number;
  readonly portRange: string;
  readonly "turnout.backendOptions": Readonly<Record<string, Plain>>;
  readonly "turnout.strictSourceRanges": boolean;
  readonly "turnout.strictExternalIPs": boolean;
}

/** The path of one configuration value, e.g. `iptables.masqueradeBit`. */
export type ConfigPath = keyof ConfigValues;

/** What somebody said explicitly; everything else has its default. */
export type GivenValues = { readonly [P in ConfigPath]?: ConfigValues[P] };
