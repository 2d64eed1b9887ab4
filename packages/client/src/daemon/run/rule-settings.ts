import {
  nodeContextFor,
  parseCIDR,
  type AllowedAddresses,
  type Backend,
  type BackendModule,
  type CIDR,
  type IPFamily,
  type KernelObject,
  type Plain,
} from "@turnout/core";
import type { RunConfig } from "../config/run-config.ts";
import type { RuleSettings } from "../insight/rule-settings.ts";

/** What a backend is told: what was given, and that it is to count where Service metrics are asked for. Pure. */
export function optionsForBackend(
  { countingOptions }: Pick<BackendModule, "countingOptions">,
  { serviceMetricsMax, backendOptions }: Pick<RunConfig, "serviceMetricsMax" | "backendOptions">,
): Readonly<Record<string, Plain>> {
  return { ...(serviceMetricsMax === 0 ? {} : countingOptions), ...backendOptions };
}

/** Take the settings of rules out of a configuration. Pure. */
export function ruleSettingsOf(module: Pick<BackendModule, "countingOptions">, config: RunConfig): RuleSettings {
  const { serviceEntriesMax, bindAddress, allowedAddresses } = config;
  const texts = (cidrs: readonly CIDR[] | undefined): readonly string[] | undefined => cidrs?.map(({ text }) => text);
  const said = {
    serviceEntriesMax,
    bindAddress,
    allowedExternalIPs: texts(allowedAddresses.externalIPs),
    allowedLoadBalancerIPs: texts(allowedAddresses.loadBalancerIPs),
    strictSourceRanges: allowedAddresses.strictSourceRanges,
    strictExternalIPs: allowedAddresses.strictExternalIPs,
  };
  const known = Object.entries(said).filter(([, value]) => value !== undefined);
  return { backendOptions: optionsForBackend(module, config), ...Object.fromEntries(known) };
}

/** Put settings of rules into a configuration: the opposite of {@link ruleSettingsOf}. Pure. */
export function withRuleSettings(config: RunConfig, settings: RuleSettings): RunConfig {
  const { backendOptions, serviceEntriesMax, bindAddress, allowedExternalIPs, allowedLoadBalancerIPs } = settings;
  const { strictSourceRanges, strictExternalIPs } = settings;
  const allowedAddresses: AllowedAddresses = {
    externalIPs: cidrsOf(allowedExternalIPs),
    loadBalancerIPs: cidrsOf(allowedLoadBalancerIPs),
    ...(strictSourceRanges === true ? { strictSourceRanges } : {}),
    ...(strictExternalIPs === true ? { strictExternalIPs } : {}),
  };
  return { ...config, backendOptions, serviceEntriesMax, bindAddress, allowedAddresses };
}

/** Say what a family's skeleton is as long as nothing is known of the node. */
export function skeletonBefore<H, K extends KernelObject>(parts: {
  readonly backend: Pick<Backend<H, K, never>, "skeleton">;
  readonly host: H;
  readonly family: IPFamily;
  readonly config: RunConfig;
}): () => readonly K[] {
  const { backend, host, family, config } = parts;
  const { nodeName: name, settings, bindAddress } = config;
  const node = nodeContextFor({ name, family, settings, bindAddress, node: undefined, serviceCIDRs: [] });
  return () => backend.skeleton({ node, host });
}

function cidrsOf(texts: readonly string[] | undefined): readonly CIDR[] | undefined {
  return texts?.flatMap((text) => parseCIDR(text) ?? []);
}
