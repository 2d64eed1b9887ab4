import { isDeepStrictEqual } from "node:util";
import { ALLOWED_ADDRESS_FLAGS, ruleSettingsOf, runConfig, withRuleSettings } from "@turnout/client/daemon";
import type { BackendFound, LoadedConfig, ProxyStatus, RuleSettings, RunConfig } from "@turnout/client/daemon";
import { ProxyError } from "@turnout/core";
import type { BackendModule, Cause, NodeSettings, Plain } from "@turnout/core";

/** What was said to this command, and what it found out. */
export interface GivenFlags {
  readonly loaded: LoadedConfig;
  /** How the backend was chosen. Of the options with which it has what is in force, the proxy's and those that were given beat them. */
  readonly found: BackendFound;
  readonly module: ConfiguredModule;
}

type ConfiguredModule = Pick<
  BackendModule,
  "name" | "proxyMode" | "options" | "nodePortAddressesDefault" | "countingOptions" | "parseOptions"
>;

/** A configuration to answer with. */
export interface AgreedFlags {
  readonly config: RunConfig;
  readonly causes: readonly Cause[];
}

/** Which fields of kube-proxy's configuration each setting is made of, and what people call it. */
const SETTINGS: Readonly<Record<keyof NodeSettings, { readonly paths: RegExp; readonly flag: string }>> = {
  masqueradeAll: { paths: /\.masqueradeAll$/, flag: "--masquerade-all" },
  masqueradeBit: { paths: /\.masqueradeBit$/, flag: "--iptables-masquerade-bit" },
  detectLocal: { paths: /^(?:detectLocal|clusterCIDR)/, flag: "--cluster-cidr or --detect-local-mode" },
  nodePortAddresses: { paths: /^nodePortAddresses$/, flag: "--nodeport-addresses" },
  localhostNodePorts: { paths: /^(?:featureGates|iptables\.localhostNodePorts)$/, flag: "--feature-gates" },
};

/** What people call the settings that are absent where nobody said them. */
const RULE_SETTINGS: Readonly<Record<Exclude<keyof RuleSettings, "backendOptions">, string>> = {
  serviceEntriesMax: "--max-service-entries",
  bindAddress: "--bind-address",
  allowedExternalIPs: `--${ALLOWED_ADDRESS_FLAGS.externalIPs}`,
  allowedLoadBalancerIPs: `--${ALLOWED_ADDRESS_FLAGS.loadBalancerIPs}`,
  strictSourceRanges: `--${ALLOWED_ADDRESS_FLAGS.strictSourceRanges}`,
  strictExternalIPs: `--${ALLOWED_ADDRESS_FLAGS.strictExternalIPs}`,
};

/** What both agree on, and where they don't. */
interface Agreed<T> {
  readonly settings: T;
  /** Each as `FLAG: the proxy's, not the command's`. */
  readonly differences: readonly string[];
}

/**
 * Take from the proxy that runs on this host what nobody said to the command, and name what it was told otherwise. Pure.
 *
 * Edges: the kernel's rules are that proxy's, so with other flags they seem wrong. Another backend's options are nobody's here.
 */
export function withProxyFlags({ loaded, found, module }: GivenFlags, proxy: ProxyStatus): AgreedFlags {
  const config = runConfig(loaded, module, { ...found, options: {} });
  const given = Object.keys({ ...loaded.fromFile, ...loaded.fromFlags });
  const isNamed = "node-name" in loaded.input.flags || given.includes("hostnameOverride");
  const isSameBackend = module.name === proxy.backend;
  const node = agreedSettings(config.settings, proxy.settings, given);
  const own = ruleSettingsOf(module, config);
  const rules = agreedRules(module, own, isSameBackend ? proxy.ruleSettings : undefined);
  const differences = [
    ...(isSameBackend ? [] : [`backend ${proxy.backend}, not ${module.name}`]),
    ...(isNamed && config.nodeName !== proxy.node ? [`--node-name ${proxy.node}, not ${config.nodeName}`] : []),
    ...node.differences,
    ...rules.differences,
  ];
  const backendOptions = { ...found.options, ...rules.settings.backendOptions };
  return {
    config: {
      ...withRuleSettings(config, { ...rules.settings, backendOptions }),
      nodeName: isNamed ? config.nodeName : proxy.node,
      settings: node.settings,
    },
    causes: differences.length === 0 ? [] : [otherFlags(differences)],
  };
}

function agreedSettings(own: NodeSettings, theirs: NodeSettings | undefined, given: readonly string[]): Agreed<NodeSettings> {
  if (theirs === undefined) return { settings: own, differences: [] };
  const names = Object.keys(SETTINGS) as (keyof NodeSettings)[];
  const said = names.filter((name) => given.some((path) => SETTINGS[name].paths.test(path)));
  const settings = { ...theirs, ...Object.fromEntries(said.map((name) => [name, own[name]])) };
  const differing = said.filter((name) => JSON.stringify(theirs[name]) !== JSON.stringify(own[name]));
  return { settings, differences: differing.map((name) => differenceText(SETTINGS[name].flag, theirs[name], own[name])) };
}

/** Options of a backend differ where the backend takes them for others. */
function agreedRules(module: ConfiguredModule, own: RuleSettings, theirs: RuleSettings | undefined): Agreed<RuleSettings> {
  if (theirs === undefined) return { settings: own, differences: [] };
  const { backendOptions: asked } = theirs;
  const parsed = module.parseOptions(asked);
  const options = Object.entries(own.backendOptions).filter(
    ([name, value]) => !isDeepStrictEqual(module.parseOptions({ ...asked, [name]: value }), parsed),
  );
  const names = Object.keys(RULE_SETTINGS) as (keyof typeof RULE_SETTINGS)[];
  const others = names.filter((name) => own[name] !== undefined && !isDeepStrictEqual(own[name], theirs[name]));
  return {
    settings: { ...theirs, ...own, backendOptions: { ...asked, ...own.backendOptions } },
    differences: [
      ...options.map(([name, value]) => differenceText(`option ${name} of the backend`, asked[name], value)),
      ...others.map((name) => differenceText(RULE_SETTINGS[name], theirs[name], own[name])),
    ],
  };
}

/**
 * Ask for a source where nobody named one and the proxy that runs here reads another one than would be taken.
 * @throws {ProxyError} `invalid_object` then.
 */
export function demandSource(taken: string, proxys: string | undefined): void {
  if (proxys === undefined || proxys === taken) return;
  throw new ProxyError("invalid_object", `without --source Services are read from ${taken}, and the proxy here reads ${proxys}`, {
    object: "--source",
    hint: `add --source ${proxys}, or another one; without --node-name, --config and --backend the proxy itself is asked`,
  });
}

type Said = NodeSettings[keyof NodeSettings] | RuleSettings[keyof RuleSettings] | Plain;

function differenceText(flag: string, theirs: Said, own: Said): string {
  return `${flag}: ${plainText(theirs)}, not ${plainText(own)}`;
}

/** Values without the marks of JSON. */
function plainText(value: Said): string {
  if (value === undefined) return "the default";
  return typeof value === "object" ? Object.values(value).flat().map(String).join(" ") || "none" : String(value);
}

function otherFlags(differences: readonly string[]): Cause {
  return {
    id: "other_flags",
    isSure: false,
    says: `the proxy that runs here was told otherwise than this command (${differences.join("; ")}), and the kernel's rules are that proxy's. So the steps may be wrong`,
    show: ["turnout status -o json"],
    fix: "leave these flags out, and the proxy's are taken; or ask the proxy itself: leave out --source, --backend, --config and --node-name",
  };
}
