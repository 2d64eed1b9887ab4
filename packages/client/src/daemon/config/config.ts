import {
  canonicalIP,
  parseCIDR,
  ProxyError,
  type AllowedAddresses,
  type BackendModule,
  type DetectLocal,
  type NodeSettings,
  type Plain,
} from "@turnout/core";
import { stringify } from "yaml";
import { allowedAddresses } from "./allowed-addresses.ts";
import { bindAddressText, isWildcard, parseBindAddress, type BindAddress } from "./bind-address.ts";
import { FIELDS, PATHS, type Field } from "./config-fields.ts";
import { INTEGER } from "./config-kinds.ts";
import { checkValues } from "./config-checks.ts";
import { CONFIG_FLAGS, flagFor, parseConfigFlags, type RawFlags } from "./config-flags.ts";
import { API_VERSION, KIND, parseKubeProxyConfig } from "./kube-proxy-config.ts";
import type { ConfigPath, ConfigValues, GivenValues } from "./config-values.ts";
import { gateStates, haveEffect, isGateOn, type GateState } from "./feature-gates.ts";
import { flagTexts } from "./flag-texts.ts";
import type { TurnoutGateName } from "./turnout-gates.ts";
import type { HostSettings } from "../host/host-settings.ts";

/** A file as it was when it was read. */
export interface FileText {
  readonly path: string;
  readonly text: string;
}

/** Everything a configuration is made from. */
export interface ConfigInput {
  /** kube-proxy's flags plus `node-name`, `master`, `max-service-entries`, `healthz-port`, `metrics-port` and those of {@link allowedAddresses}, by name without dashes. */
  readonly flags: RawFlags;
  /** What --config names. */
  readonly file: FileText | undefined;
  /** The operating system's host name. */
  readonly hostname: string;
  /** Values of --backend-option. */
  readonly backendOptions?: Readonly<Record<string, Plain>>;
}

/** Flags and file read and merged, before the backend is chosen. */
export interface LoadedConfig {
  /** kube-proxy's word for the backend; "" when nobody said. */
  readonly mode: string;
  /** Said by the file. */
  readonly fromFile: GivenValues;
  /** Said by flags that count. */
  readonly fromFlags: GivenValues;
  /** How to log; what nobody said is undefined. */
  readonly logging: LoggingSettings;
  readonly warnings: readonly string[];
  readonly input: ConfigInput;
}

/** What flags and file say about logs. */
export interface LoggingSettings {
  readonly format: "text" | "json" | undefined;
  /** klog's level: more is logged from 4 on. */
  readonly verbosity: number | undefined;
}

/** What a running proxy is told, frozen. */
export interface RunConfig {
  readonly nodeName: string;
  readonly settings: NodeSettings;
  /** What is set on the host besides rules. */
  readonly hostSettings: HostSettings;
  /** A specific node IP to use; undefined when unspecified. */
  readonly bindAddress: string | undefined;
  readonly healthzBindAddress: BindAddress | undefined;
  readonly metricsBindAddress: BindAddress | undefined;
  readonly bindAddressHardFail: boolean;
  /** Wait after a failed sync; a family is unhealthy when an update has waited twice as long. */
  readonly syncPeriodMs: number;
  readonly minSyncPeriodMs: number;
  /** Endpoints times addresses of one Service, beyond which it is left out; undefined: what the backend carries. */
  readonly serviceEntriesMax: number | undefined;
  /** Which addresses Services may have besides their cluster IPs. */
  readonly allowedAddresses: AllowedAddresses;
  readonly kubeconfig: string | undefined;
  readonly master: string | undefined;
  readonly backendOptions: Readonly<Record<string, Plain>>;
  readonly configFile: FileText | undefined;
  /** What others change is repaired as soon as the kernel tells of it: gate TurnoutRepairOnNotice. */
  readonly repairsOnNotice: boolean;
  /** kube-proxy's word for the backend in use. */
  readonly proxyMode: string;
  /** The feature gates that have an effect here, as they stand. */
  readonly features: readonly GateState[];
  /** Whether /debug/pprof/ is answered. */
  readonly isProfiled: boolean;
  /** Whether /statusz and /flagz are answered: gates ComponentStatusz and ComponentFlagz, on since 1.36. */
  readonly hasStatusz: boolean;
  readonly hasFlagz: boolean;
  /** All flags that mirror the configuration, as text, as /flagz shows them: what was typed, else the default. */
  readonly flagz: Readonly<Record<string, string>>;
  /** The whole configuration with defaults, as /configz shows it. */
  readonly configz: Readonly<Record<string, Plain>>;
  readonly warnings: readonly string[];
}

/** A backend as far as its configuration is concerned. */
export type ConfiguredBackend = Pick<BackendModule, "name" | "proxyMode">;

/** What /configz calls it. */
const CONFIGZ = "kubeproxy.config.k8s.io";
/** kube-proxy's configuration has a section for each of its modes, of the same name but for these. */
const PREFIX_OF: Readonly<Record<string, string>> = { kernelspace: "winkernel." };
/** Fields of a section that are the node's settings; its others go to the backend as options. */
const NOT_OPTIONS: ReadonlySet<string> = new Set(["masqueradeBit", "masqueradeAll", "syncPeriod", "minSyncPeriod"]);

/**
 * Read file and flags, and decide which counts.
 *
 * Edges: with a file, configuration flags are ignored, with a warning, except those of the host name and of logging (kube-proxy's rule).
 * @throws {ProxyError} `invalid_object` naming the flag or the file's field.
 * @source kube-proxy cmd/kube-proxy/app/options.go Complete
 */
export function loadConfig(input: ConfigInput): LoadedConfig {
  const flags = parseConfigFlags(input.flags);
  const file = input.file === undefined ? undefined : parseKubeProxyConfig(input.file.text, input.file.path);
  const ignored = file === undefined ? [] : CONFIG_FLAGS.filter(({ path }) => path in flags && !countsBesideFile(path));
  const counting = Object.entries(flags).filter(([path]) => file === undefined || countsBesideFile(path));
  const fromFlags: GivenValues = Object.fromEntries(counting);
  const given: GivenValues = { ...file?.given, ...fromFlags };
  const warnings = [...(file?.warnings ?? []), ...deprecated(input.flags)];
  if (ignored.length > 0)
    warnings.push(
      `--config is given, so ${ignored.map(({ name }) => `--${name}`).join(", ")} ${ignored.length === 1 ? "is" : "are"} ignored`,
    );
  const logging = { format: given["logging.format"] as LoggingSettings["format"], verbosity: given["logging.verbosity"] };
  const loaded = { mode: given.mode ?? "", fromFile: file?.given ?? {}, fromFlags, logging, warnings, input };
  checkValues(given, undefined, (path) => placeOf(path, loaded));
  return loaded;
}

/** @source kube-proxy cmd/kube-proxy/app/options.go copyLogsFromFlags, processHostnameOverrideFlag */
function countsBesideFile(path: string): boolean {
  return path === "hostnameOverride" || path.startsWith("logging.");
}

function deprecated(flags: RawFlags): readonly string[] {
  return (["healthz", "metrics"] as const)
    .filter((server) => Object.hasOwn(flags, `${server}-port`))
    .map((server) => `--${server}-port is deprecated, use --${server}-bind-address instead`);
}

/** Tell whether a gate of Turnout's is on by what was loaded; it counts before a backend is chosen. Pure. */
export function isFeatureOn(name: TurnoutGateName, { fromFile, fromFlags }: Pick<LoadedConfig, "fromFile" | "fromFlags">): boolean {
  return isGateOn(name, { ...fromFile, ...fromFlags }.featureGates ?? {});
}

/**
 * Make the configuration for one backend.
 *
 * Edges: the sync periods and masquerade settings come from the section of that backend's mode (iptables' for those without one).
 * @throws {ProxyError} `invalid_object` when values contradict each other or the node's name is blank.
 */
export function runConfig(loaded: LoadedConfig, { name, proxyMode = name }: ConfiguredBackend): RunConfig {
  const section = settingsSectionOf(proxyMode);
  const given = { ...loaded.fromFile, ...loaded.fromFlags };
  checkValues(given, proxyMode, (path) => placeOf(path, loaded));
  const values = withDefaults(given);
  const masqueradeBit = values[section === "nftables" ? "nftables.masqueradeBit" : "iptables.masqueradeBit"];
  const masqueradeAll = values[section === "nftables" ? "nftables.masqueradeAll" : "iptables.masqueradeAll"];
  const syncPeriodMs = values[`${section}.syncPeriod`];
  const minSyncPeriodMs = values[`${section}.minSyncPeriod`];
  if (minSyncPeriodMs > syncPeriodMs) {
    throw invalid(placeOf(`${section}.minSyncPeriod`, loaded), "it must not be longer than syncPeriod");
  }
  const servers = serverAddresses(loaded, values);
  return Object.freeze({
    nodeName: nodeName(loaded, values),
    settings: Object.freeze({
      masqueradeAll,
      masqueradeBit,
      detectLocal: detectLocal(values, loaded),
      nodePortAddresses: nonEmpty(values.nodePortAddresses),
    }),
    hostSettings: hostSettings(values),
    bindAddress: specificAddress(values.bindAddress),
    ...servers,
    bindAddressHardFail: values.bindAddressHardFail,
    syncPeriodMs,
    minSyncPeriodMs,
    serviceEntriesMax: serviceEntriesMax(loaded.input.flags),
    allowedAddresses: Object.freeze(allowedAddresses(loaded.input.flags)),
    kubeconfig: values["clientConnection.kubeconfig"] || undefined,
    master: textFlag(loaded.input.flags, "master"),
    backendOptions: Object.freeze({ ...sectionOptions(given, proxyMode), ...loaded.input.backendOptions }),
    configFile: loaded.input.file,
    repairsOnNotice: isFeatureOn("TurnoutRepairOnNotice", loaded),
    proxyMode,
    isProfiled: values.enableProfiling,
    features: gateStates(values.featureGates),
    hasStatusz: isGateOn("ComponentStatusz", values.featureGates),
    hasFlagz: isGateOn("ComponentFlagz", values.featureGates),
    flagz: flagTexts(loaded.input.flags),
    configz: configz(values, servers),
    warnings: [...loaded.warnings, ...otherMode(loaded.mode, { name, proxyMode }), ...withoutEffect(given)],
  });
}

function invalid(object: string, what: string, hint?: string): ProxyError {
  return new ProxyError("invalid_object", what, { object, ...(hint === undefined ? {} : { hint }) });
}

type SettingsSection = "iptables" | "ipvs" | "nftables";

/** The section whose masquerade and sync settings count. */
function settingsSectionOf(proxyMode: string): SettingsSection {
  return proxyMode === "nftables" || proxyMode === "ipvs" ? proxyMode : "iptables";
}

function withDefaults(given: GivenValues): ConfigValues {
  const defaults = Object.fromEntries(PATHS.map((path) => [path, FIELDS[path].fallback]));
  return { ...defaults, ...given } as ConfigValues;
}

function textFlag(flags: RawFlags, name: string): string | undefined {
  const value = Object.hasOwn(flags, name) ? flags[name] : undefined;
  return value === true ? undefined : value;
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

function nonEmpty(list: readonly string[]): readonly string[] | undefined {
  return list.length === 0 ? undefined : list;
}

function specificAddress(text: string): string | undefined {
  const ip = canonicalIP(text)?.text;
  return ip === undefined || isWildcard(ip) ? undefined : ip;
}

/** Where somebody finds a setting: the file's field, or its flag. */
function placeOf(path: ConfigPath, { fromFlags, input: { file } }: Pick<LoadedConfig, "fromFlags" | "input">): string {
  if (file !== undefined && !(path in fromFlags)) return `${file.path}: ${path}`;
  return flagFor(path) ?? path;
}

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
  if (text.trim() === "") return [];
  const cidrs = text.split(",").map((part) => {
    const cidr = parseCIDR(part);
    if (cidr === undefined) throw invalid(place, `"${part}" is not a CIDR like 10.0.0.0/8`);
    return cidr;
  });
  if (cidrs.length > 2 || (cidrs.length === 2 && cidrs[0]?.family === cidrs[1]?.family)) {
    throw invalid(place, `"${text}" must be one CIDR, or one of each family`);
  }
  return cidrs.map((cidr) => cidr.text);
}

/** The address of one server: "" from a flag turns it off, from a file it means the default (kube-proxy's defaulting replaces it). */
function serverAddress(
  loaded: LoadedConfig,
  path: "healthzBindAddress" | "metricsBindAddress",
  fallback: BindAddress,
  portFlag: string,
): BindAddress | undefined {
  const text = loaded.fromFlags[path] ?? loaded.fromFile[path];
  if (text === "") return undefined;
  const portText = loaded.input.file === undefined ? textFlag(loaded.input.flags, portFlag) : undefined;
  if (portText !== undefined && text === undefined) {
    const port = INTEGER.fromFlag(portText);
    if (port < 0 || port > 65_535) throw invalid(`--${portFlag}`, `${portText} must be 0 to 65535`);
    return port === 0 ? undefined : { ...fallback, port };
  }
  return text === undefined ? fallback : parseBindAddress(text, fallback.port);
}

function serviceEntriesMax(flags: RawFlags): number | undefined {
  const text = textFlag(flags, "max-service-entries");
  if (text === undefined) return undefined;
  const value = INTEGER.fromFlag(text);
  if (value < 1) throw invalid("--max-service-entries", `${text} must be at least 1`);
  return value;
}

type ServerAddresses = Pick<RunConfig, "healthzBindAddress" | "metricsBindAddress">;

function serverAddresses(loaded: LoadedConfig, values: ConfigValues): ServerAddresses {
  const isV6 = canonicalIP(values.bindAddress)?.family === "IPv6";
  const healthz = { ip: isV6 ? "::" : "0.0.0.0", port: 10_256 };
  const metrics = { ip: isV6 ? "::1" : "127.0.0.1", port: 10_249 };
  return {
    healthzBindAddress: serverAddress(loaded, "healthzBindAddress", healthz, "healthz-port"),
    metricsBindAddress: serverAddress(loaded, "metricsBindAddress", metrics, "metrics-port"),
  };
}

/** The explicit fields of the mode's own section as the file writes them, e.g. `ipvs.tcpTimeout` → `tcpTimeout`: `15m0s`. */
function sectionOptions(given: GivenValues, proxyMode: string): Readonly<Record<string, Plain>> {
  const prefix = PREFIX_OF[proxyMode] ?? `${proxyMode}.`;
  const entries = Object.entries(given)
    .filter(([path]) => path.startsWith(prefix) && !NOT_OPTIONS.has(path.slice(prefix.length)))
    .map(([path, value]) => [path.slice(prefix.length), (FIELDS[path as keyof ConfigValues] as Field<unknown>).kind.show(value)] as const);
  return Object.fromEntries(entries);
}

function withoutEffect(given: GivenValues): readonly string[] {
  const gates = Object.keys(given.featureGates ?? {}).filter((name) => !haveEffect({ [name]: true }));
  // kubeadm writes out every field: "", 0 and false ask for nothing.
  const asksFor = (value: unknown): boolean => (typeof value === "object" ? Object.keys(value ?? {}).length > 0 : Boolean(value));
  const isIdle = (path: ConfigPath): boolean =>
    FIELDS[path].hasNoEffect === true && asksFor(given[path]) && !(path === "featureGates" && gates.length === 0);
  const names = PATHS.filter(isIdle).map((path) => (path === "featureGates" ? `${path} (${gates.join(", ")})` : path));
  return names.length === 0 ? [] : [`accepted, but without effect here: ${names.join(", ")}`];
}

/** A kube-proxy file for another mode has its settings in another section: say so rather than lose them silently. */
function otherMode(mode: string, { name, proxyMode }: Required<ConfiguredBackend>): readonly string[] {
  if (mode === "" || mode === proxyMode) return [];
  return [
    `the configuration is for mode ${mode}, but the backend is ${name}: masquerade and sync settings are those of section ${settingsSectionOf(proxyMode)}`,
  ];
}

function configz(values: ConfigValues, servers: ServerAddresses): Readonly<Record<string, Tree>> {
  const { healthzBindAddress: healthz, metricsBindAddress: metrics } = servers;
  const said: ConfigValues = {
    ...values,
    healthzBindAddress: healthz === undefined ? "" : bindAddressText(healthz),
    metricsBindAddress: metrics === undefined ? "" : bindAddressText(metrics),
  };
  const root: Tree = { apiVersion: API_VERSION, kind: KIND };
  for (const path of PATHS) {
    const names = path.split(".");
    const last = names.pop() ?? "";
    let map = root;
    for (const name of names) map = (map[name] ??= {}) as Tree;
    map[last] = (FIELDS[path] as Field<unknown>).kind.show(said[path]);
  }
  return { [CONFIGZ]: root };
}

/** An object of objects that is being built. */
interface Tree {
  [name: string]: Plain;
}

/**
 * Write what flags and file say, with defaults for all else, as a configuration file: what --write-config-to does.
 *
 * Edges: a server's address that a flag turned off is written as "", which a file can't mean: it means the default.
 * @throws {ProxyError} `invalid_object` for what the configuration's mode refuses.
 */
export function configFileText(loaded: LoadedConfig): string {
  return stringify(runConfig(loaded, { name: loaded.mode }).configz[CONFIGZ]);
}
