import { parseCIDR, type AllowedAddresses, type BackendModule, type CIDR, type Plain } from "@turnout/core";
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
  };
  const known = Object.entries(said).filter(([, value]) => value !== undefined);
  return { backendOptions: optionsForBackend(module, config), ...Object.fromEntries(known) };
}

/** Put settings of rules into a configuration: the opposite of {@link ruleSettingsOf}. Pure. */
export function withRuleSettings(config: RunConfig, settings: RuleSettings): RunConfig {
  const { backendOptions, serviceEntriesMax, bindAddress, allowedExternalIPs, allowedLoadBalancerIPs, strictSourceRanges } = settings;
  const allowedAddresses: AllowedAddresses = {
    externalIPs: cidrsOf(allowedExternalIPs),
    loadBalancerIPs: cidrsOf(allowedLoadBalancerIPs),
    ...(strictSourceRanges === true ? { strictSourceRanges } : {}),
  };
  return { ...config, backendOptions, serviceEntriesMax, bindAddress, allowedAddresses };
}

function cidrsOf(texts: readonly string[] | undefined): readonly CIDR[] | undefined {
  return texts?.flatMap((text) => parseCIDR(text) ?? []);
}
