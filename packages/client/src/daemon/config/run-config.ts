import { canonicalIP, type AllowedAddresses, type BackendModule, type NodeSettings, type Plain, type DetectLocal } from "@turnout/core";
import { stringify } from "yaml";
import { ALLOWED_ADDRESS_FLAGS, allowedAddresses, isStrict, STRICT_SETTINGS } from "./allowed-addresses.ts";
import { optionsFromFile, optionsFromFlags, type BackendOptions } from "./backend-options.ts";
import { isWildcard } from "./bind-address.ts";
import { checkValues } from "./config-checks.ts";
import { FIELDS, PATHS } from "./config-fields.ts";
import type { RawFlags } from "./config-flags.ts";
import { cidrOf, INTEGER } from "./config-kinds.ts";
import type { ConfigValues, GivenValues } from "./config-values.ts";
import { CONFIGZ, configz } from "./configz.ts";
import { gatesWithoutEffect, gateStates, isGateOn, servesExternalIPs, type GateSettings, type GateState } from "./gates/feature-gates.ts";
import { flagTexts } from "./flag-texts.ts";
import { asksFor, countedSections, iptablesNodePortAddresses, otherMode, sectionOptions } from "./mode-sections.ts";
import { insightSettings, type InsightSettings } from "./insight-flags.ts";
import { invalid, isFeatureOn, placeOf, textFlag, type FileText, type LoadedConfig } from "./loaded-config.ts";
import { serverAddresses, type ServerAddresses } from "./server-addresses.ts";
import type { HostSettings } from "../host/host-settings.ts";

/** What a running proxy is told, frozen. */
export interface RunConfig extends ServerAddresses, InsightSettings {
  readonly nodeName: string;
  readonly settings: NodeSettings;
  /** What is set on the host besides rules. */
  readonly hostSettings: HostSettings;
  /** A specific node IP to use; undefined when unspecified. */
  readonly bindAddress: string | undefined;
  readonly bindAddressHardFail: boolean;
  /** Wait after a failed sync; a family is unhealthy when an update has waited twice as long. */
  readonly syncPeriodMs: number;
  readonly minSyncPeriodMs: number;
  /** Endpoints times addresses of one Service, beyond which endpoints are left out; undefined: what the backend carries. */
  readonly serviceEntriesMax: number | undefined;
  /** Which addresses Services may have besides their cluster IPs. */
  readonly allowedAddresses: AllowedAddresses;
  /** Neither a flag nor a gate says whether externalIPs are served: the cluster's version does. */
  readonly followsClusterVersion: boolean;
  readonly kubeconfig: string | undefined;
  readonly master: string | undefined;
  readonly backendOptions: Readonly<Record<string, Plain>>;
  readonly configFile: FileText | undefined;
  /** What others change is repaired as soon as the kernel tells of it: gate TurnoutRepairOnNotice. */
  readonly repairsOnNotice: boolean;
  /** kube-proxy's word for the backend in use. */
  readonly proxyMode: string;
  /** All feature gates, as they stand. */
  readonly features: readonly GateState[];
  /** Whether /debug/pprof/ is answered. */
  readonly isProfiled: boolean;
  /** Whether /statusz and /flagz are answered: gates ComponentStatusz and ComponentFlagz, on since 1.36. */
  readonly hasStatusz: boolean;
  readonly hasFlagz: boolean;
  /** All flags of kube-proxy's, and those of ours that mirror the configuration, as text, as /flagz shows them: what was typed, else the default. */
  readonly flagz: Readonly<Record<string, string>>;
  /** The whole configuration with defaults, as /configz shows it. */
  readonly configz: Readonly<Record<string, Plain>>;
  readonly warnings: readonly string[];
}

/** A backend as far as its configuration is concerned. */
export type ConfiguredBackend = Pick<BackendModule, "name" | "proxyMode" | "options" | "nodePortAddressesDefault">;

/** How a backend came to be the one that is configured. */
export interface BackendFound {
  /** Options with which it adopts the rules of this host; those of file and flags beat them. */
  readonly options?: BackendOptions;
  /** Neither a flag nor the mode names a backend: what kube-proxy's mode "" means holds, which is iptables. */
  readonly isUnnamed?: boolean;
}

/**
 * Make the configuration for one backend.
 *
 * Edges: the sync periods and masquerade settings come from the section of that backend's mode (iptables' for those without one). Of a backend
 * that nothing names they come from iptables' section, and node ports answer where they do in mode iptables.
 * @throws {ProxyError} `invalid_object` when values contradict each other or the node's name is blank.
 */
export function runConfig(loaded: LoadedConfig, backend: ConfiguredBackend, found: BackendFound = {}): RunConfig {
  const { name, proxyMode = name } = backend;
  const isUnnamed = found.isUnnamed === true;
  const counted = countedSections(proxyMode, isUnnamed);
  const given = { ...loaded.fromFile, ...loaded.fromFlags };
  checkValues(given, isUnnamed ? "iptables" : proxyMode, (path) => placeOf(path, loaded));
  if (proxyMode === "ipvs" && !isGateOn("KubeProxyIPVS", given.featureGates ?? {}))
    throw invalid(placeOf("featureGates", loaded), "KubeProxyIPVS=false refuses mode ipvs", "choose another mode, or leave the gate out");
  const options = givenOptions(loaded, backend);
  const values = asUnnamed(withDefaults({ ...given, "turnout.backendOptions": options }), backend, isUnnamed);
  const masqueradeBit = values[`${counted.masquerade}.masqueradeBit`];
  const masqueradeAll = values[`${counted.masquerade}.masqueradeAll`];
  const syncPeriodMs = values[`${counted.periods}.syncPeriod`];
  const minSyncPeriodMs = values[`${counted.periods}.minSyncPeriod`];
  if (minSyncPeriodMs > syncPeriodMs) {
    throw invalid(placeOf(`${counted.periods}.minSyncPeriod`, loaded), "it must not be longer than syncPeriod");
  }
  const servers = serverAddresses(loaded, values);
  const limits = addressLimits(loaded.input.flags, values);
  return Object.freeze({
    nodeName: nodeName(loaded, values),
    settings: Object.freeze({
      masqueradeAll,
      masqueradeBit,
      detectLocal: detectLocal(values, loaded),
      nodePortAddresses: nonEmpty(values.nodePortAddresses),
      ...(servesLoopback(values, proxyMode, isUnnamed) ? {} : { localhostNodePorts: false }),
    }),
    hostSettings: hostSettings(values),
    bindAddress: specificAddress(values.bindAddress),
    ...servers,
    bindAddressHardFail: values.bindAddressHardFail,
    syncPeriodMs,
    minSyncPeriodMs,
    serviceEntriesMax: serviceEntriesMax(loaded.input.flags),
    ...insightSettings(loaded.input.flags),
    ...limits,
    kubeconfig: values["clientConnection.kubeconfig"] || undefined,
    master: textFlag(loaded.input.flags, "master") || undefined,
    backendOptions: Object.freeze({ ...found.options, ...sectionOptions(given, proxyMode), ...options }),
    configFile: loaded.input.file,
    repairsOnNotice: isFeatureOn("TurnoutRepairOnNotice", loaded),
    proxyMode,
    isProfiled: values.enableProfiling,
    features: gateStates(values.featureGates),
    hasStatusz: isGateOn("ComponentStatusz", values.featureGates),
    hasFlagz: isGateOn("ComponentFlagz", values.featureGates),
    flagz: flagTexts(loaded.input.flags, loaded.input.file?.path),
    configz: configz({ ...values, ...strictValues(limits.allowedAddresses) }, servers, proxyMode),
    warnings: [
      ...loaded.warnings,
      ...otherMode(loaded, backend, counted, isUnnamed),
      ...flagBeatsGate(loaded, values.featureGates),
      ...withoutEffect(given),
    ],
  });
}

function withDefaults(given: GivenValues): ConfigValues {
  const defaults = Object.fromEntries(PATHS.map((path) => [path, FIELDS[path].fallback]));
  return { ...defaults, ...given } as ConfigValues;
}

/** With mode "" node ports answer where they do in kube-proxy's mode iptables, and not where the backend would have them by itself. */
function asUnnamed(values: ConfigValues, { nodePortAddressesDefault }: ConfiguredBackend, isUnnamed: boolean): ConfigValues {
  if (!isUnnamed || nodePortAddressesDefault === undefined) return values;
  const nodePortAddresses = iptablesNodePortAddresses(values.nodePortAddresses, values["iptables.localhostNodePorts"]);
  return { ...values, nodePortAddresses };
}

function servesLoopback(values: ConfigValues, proxyMode: string, isUnnamed: boolean): boolean {
  if (isUnnamed && !values["iptables.localhostNodePorts"]) return false;
  return proxyMode !== "nftables" || values.featureGates["KubeProxyNFTablesLocalhostNodePorts"] !== false;
}

/** Flag beats file beats host name; trimmed and lower-cased as kube-proxy does, so that it matches the Node object. */
function nodeName(loaded: LoadedConfig, values: ConfigValues): string {
  const flag = textFlag(loaded.input.flags, "node-name") || loaded.fromFlags.hostnameOverride;
  if (flag !== undefined && flag.trim() === "") throw invalid("--node-name", "the node's name must not be blank");
  const name = (flag ?? (values.hostnameOverride.trim() || loaded.input.hostname)).trim().toLowerCase();
  if (name === "") throw invalid("the node's name", "the host has no name", "pass --node-name");
  return name;
}

function hostSettings(values: ConfigValues): HostSettings {
  return {
    conntrack: {
      maxPerCore: values["conntrack.maxPerCore"],
      min: values["conntrack.min"],
      tcpEstablishedTimeoutMs: values["conntrack.tcpEstablishedTimeout"],
      tcpCloseWaitTimeoutMs: values["conntrack.tcpCloseWaitTimeout"],
      tcpBeLiberal: values["conntrack.tcpBeLiberal"],
      udpTimeoutMs: values["conntrack.udpTimeout"],
      udpStreamTimeoutMs: values["conntrack.udpStreamTimeout"],
    },
    oomScoreAdj: values.oomScoreAdj,
  };
}

function strictValues(allowed: RunConfig["allowedAddresses"]): GivenValues {
  return Object.fromEntries(STRICT_SETTINGS.map((name) => [`turnout.${name}`, allowed[name] === true]));
}

/** A flag counts before the gate, and that before the cluster's version. */
function addressLimits(flags: RawFlags, values: ConfigValues): Pick<RunConfig, "allowedAddresses" | "followsClusterVersion"> {
  const byFlag = allowedAddresses(flags);
  const isServed = servesExternalIPs(values.featureGates, undefined);
  const strict = STRICT_SETTINGS.filter((name) => isStrict(name, flags, values[`turnout.${name}`])).map((name) => [name, true] as const);
  const externalIPs = byFlag.externalIPs ?? (isServed === false ? [] : undefined);
  return {
    allowedAddresses: Object.freeze({ ...byFlag, externalIPs, ...Object.fromEntries(strict) }),
    followsClusterVersion: externalIPs === undefined && isServed === undefined,
  };
}

/** The backend's options of the file's section `turnout` and of `--backend-option`, which beats the file. */
function givenOptions(loaded: LoadedConfig, backend: ConfiguredBackend): BackendOptions {
  const path = "turnout.backendOptions";
  return {
    ...optionsFromFile(loaded.fromFile[path] ?? {}, backend, placeOf(path, loaded)),
    ...optionsFromFlags(loaded.input.backendOptions ?? [], backend),
  };
}

function nonEmpty(list: readonly string[]): readonly string[] | undefined {
  return list.length === 0 ? undefined : list;
}

function specificAddress(text: string): string | undefined {
  const ip = canonicalIP(text)?.text;
  return ip === undefined || isWildcard(ip) ? undefined : ip;
}

function serviceEntriesMax(flags: RawFlags): number | undefined {
  const text = textFlag(flags, "max-service-entries");
  if (text === undefined) return undefined;
  const value = INTEGER.fromFlag(text);
  if (value < 1 || value > 1_000_000) throw invalid("--max-service-entries", `${text} must be between 1 and 1000000`);
  return value;
}

/** kube-proxy has no such flag: the file's gate may be meant to close what the flag opens. */
function flagBeatsGate({ input: { flags } }: LoadedConfig, gates: GateSettings): readonly string[] {
  const { externalIPs } = allowedAddresses(flags);
  if (gates["AllowServiceExternalIPs"] !== false || externalIPs === undefined || externalIPs.length === 0) return [];
  return [`--${ALLOWED_ADDRESS_FLAGS.externalIPs} counts, and so the feature gate AllowServiceExternalIPs=false has no effect`];
}

function withoutEffect(given: GivenValues): readonly string[] {
  const names: string[] = PATHS.filter((path) => FIELDS[path].hasNoEffect === true && asksFor(path, given[path]));
  const gates = gatesWithoutEffect(given.featureGates ?? {});
  if (gates.length > 0) names.push(`featureGates (${gates.join(", ")})`);
  return names.length === 0 ? [] : [`accepted, but without effect here: ${names.join(", ")}`];
}

/**
 * Write what flags and file say, with defaults for all else, as a configuration file: what --write-config-to does.
 *
 * Shape: the backend says of what kind its options are.
 * Edges: a server's address that a flag turned off is written as "", which a file can't mean: it means the default.
 * @throws {ProxyError} `invalid_object` for what the configuration's mode refuses.
 */
export function configFileText(loaded: LoadedConfig, backend: Pick<BackendModule, "options"> = {}): string {
  return stringify(runConfig(loaded, { ...backend, name: loaded.mode, proxyMode: loaded.mode }).configz[CONFIGZ]);
}

/** Read how a node tells its pods' traffic. @throws {ProxyError} `invalid_object` where a mode lacks its value, or CIDRs can't be read. */
function detectLocal(values: ConfigValues, loaded: LoadedConfig): DetectLocal {
  const bridgeInterface = values["detectLocal.bridgeInterface"];
  const interfaceNamePrefix = values["detectLocal.interfaceNamePrefix"];
  switch (values.detectLocalMode) {
    case "NodeCIDR":
      return { mode: "NodeCIDR" };
    case "BridgeInterface":
      if (bridgeInterface === "") throw invalid(placeOf("detectLocal.bridgeInterface", loaded), "mode BridgeInterface needs it");
      return { mode: "BridgeInterface", bridgeInterface };
    case "InterfaceNamePrefix":
      if (interfaceNamePrefix === "")
        throw invalid(placeOf("detectLocal.interfaceNamePrefix", loaded), "mode InterfaceNamePrefix needs it");
      return { mode: "InterfaceNamePrefix", interfaceNamePrefix };
    default:
      return { mode: "ClusterCIDR", clusterCIDRs: clusterCIDRs(values.clusterCIDR, placeOf("clusterCIDR", loaded)) };
  }
}

function clusterCIDRs(text: string, place: string): readonly string[] {
  if (text === "") return [];
  const cidrs = text.split(",").map((part) => {
    const cidr = cidrOf(part);
    if (cidr === undefined) throw invalid(place, `"${part}" is not a CIDR like 10.0.0.0/8`);
    return cidr;
  });
  if (cidrs.length > 2 || (cidrs.length === 2 && cidrs[0]?.family === cidrs[1]?.family)) {
    throw invalid(place, `"${text}" must be one CIDR, or one of each family`);
  }
  return cidrs.map((cidr) => cidr.text);
}
