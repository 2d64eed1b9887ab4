import { ProxyError } from "@turnout/core";
import type { TypedOption } from "./backend-options.ts";
import { checkValues } from "./config-checks.ts";
import { CONFIG_FLAGS, flagFor, parseConfigFlags, typedTexts, type RawFlags } from "./config-flags.ts";
import type { ConfigPath, GivenValues } from "./config-values.ts";
import { isGateOn } from "./gates/feature-gates.ts";
import { parseKubeProxyConfig } from "./kube-proxy-config.ts";
import type { TurnoutGateName } from "./gates/turnout-gates.ts";

/** A file as it was when it was read. */
export interface FileText {
  readonly path: string;
  readonly text: string;
}

/** Everything a configuration is made from. */
export interface ConfigInput {
  /** kube-proxy's flags plus `node-name`, `master`, `max-service-entries`, `healthz-port`, `metrics-port`, `service-metrics`, `web-page` and the allow-lists of addresses, by name without dashes. */
  readonly flags: RawFlags;
  /** What --config names. */
  readonly file: FileText | undefined;
  /** The operating system's host name. */
  readonly hostname: string;
  /** Each --backend-option as typed. */
  readonly backendOptions?: readonly TypedOption[];
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
  const ignored = file === undefined ? [] : CONFIG_FLAGS.filter(({ path }) => path in flags && !countsNextToFile(path));
  const counting = Object.entries(flags).filter(([path]) => file === undefined || countsNextToFile(path));
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
function countsNextToFile(path: string): boolean {
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

/** Where somebody finds a setting: the file's field, or its flag. */
export function placeOf(path: ConfigPath, { fromFlags, input: { file } }: Pick<LoadedConfig, "fromFlags" | "input">): string {
  if (file !== undefined && !(path in fromFlags)) return `${file.path}: ${path}`;
  return flagFor(path) ?? path;
}

/** The text of a flag that mirrors no field, the last one where it was repeated; undefined: it was not given. */
export function textFlag(flags: RawFlags, name: string): string | undefined {
  const value = typedTexts(flags, name).at(-1);
  return value === true ? undefined : value;
}

/** A setting that can't be, and where it is. */
export function invalid(object: string, what: string, hint?: string): ProxyError {
  return new ProxyError("invalid_object", what, { object, ...(hint === undefined ? {} : { hint }) });
}
