import { ProxyError, type Log } from "@turnout/core";
import { Option, type Command } from "commander";
import { tlsFiles, type TlsFiles } from "../../api/watch/target.ts";
import { createLog, type LogLevel } from "../../process/log.ts";
import { ALLOWED_ADDRESS_FLAGS } from "../config/allowed-addresses.ts";
import { typedOption, type TypedOption } from "../config/backend-options.ts";
import { readConfigFile } from "../config/config-file.ts";
import { CONFIG_FLAGS, type FlagText, type RawFlags } from "../config/config-flags.ts";
import { parseDuration } from "../config/duration.ts";
import { loadConfig, type LoadedConfig, type LoggingSettings } from "../config/loaded-config.ts";
import type { ProgramEnvironment } from "./environment.ts";

/** Options of ours that travel with kube-proxy's flags. */
const NODE_FLAGS: readonly string[] = [
  "node-name",
  "master",
  "max-service-entries",
  "healthz-port",
  "metrics-port",
  "service-metrics",
  "web-page",
  ...Object.values(ALLOWED_ADDRESS_FLAGS),
];
const DEFAULT_TIMEOUT = "1m";
/** klog prints more from this level on; ours is debug. */
const DEBUG_LEVEL = 4;

/** Flags that matter to what is computed, and not only to a running proxy. */
const STATE_PATHS: ReadonlySet<string> = new Set([
  "featureGates",
  "clientConnection.kubeconfig",
  "hostnameOverride",
  "bindAddress",
  "mode",
  "iptables.masqueradeAll",
  "iptables.masqueradeBit",
  "detectLocalMode",
  "detectLocal.bridgeInterface",
  "detectLocal.interfaceNamePrefix",
  "clusterCIDR",
  "nodePortAddresses",
]);

/** Add -v and --logging-format. */
export function addLogOptions(command: Command): Command {
  return addVerbose(command)
    .addOption(new Option("--v <level>", "kube-proxy's spelling").hideHelp())
    .addOption(new Option("--logging-format <format>", "text or json (default: text on a terminal)").choices(["text", "json"]));
}

/** Add -v alone, for a command that has kube-proxy's flags of logging. */
export function addVerbose(command: Command): Command {
  return command.option("-v, --verbose [level]", "log more; errors come with cause and stack");
}

/** Add the files for a node-state server over TLS. */
export function addApiOptions(command: Command): Command {
  return command
    .option("--api-ca <file>", "for a node-state server at tls://HOST:PORT: whose certificate it needs")
    .option("--api-cert <file>", "for a node-state server at tls://HOST:PORT: our certificate")
    .option("--api-key <file>", "for a node-state server at tls://HOST:PORT: its key");
}

/** Add those, --node-name and --config. */
export function addNodeOptions(command: Command): Command {
  return addApiOptions(command)
    .option("--node-name <name>", "the node to compute for (default: this host's name)")
    .option("--config <file>", "a KubeProxyConfiguration file; kube-proxy's other flags are then ignored");
}

/** The files for a node-state server over TLS, if any. @throws {ProxyError} `invalid_object` when some of them are missing. */
export function apiTls({ apiCa, apiCert, apiKey }: CommonOptions): TlsFiles | undefined {
  return tlsFiles({ ca: apiCa, cert: apiCert, key: apiKey }, "--api");
}

/** Add kube-proxy's configuration flags: all, or those alone that decide what is computed. */
export function addConfigFlags(command: Command, which: "all" | "state"): Command {
  command.optionsGroup("Options of kube-proxy, same names and meaning:");
  for (const flag of CONFIG_FLAGS) {
    if (which === "state" && !STATE_PATHS.has(flag.path)) continue;
    const value = flag.placeholder === undefined ? "[true|false]" : `<${flag.placeholder}>`;
    const option = new Option(`--${flag.name} ${value}`, flag.help);
    command.addOption(flag.isShown ? option : option.hideHelp());
  }
  if (which === "all") {
    addRuleOptions(command);
    command.option(
      "--web-page [true|false]",
      "serve a page for people at the metrics port, /turnout/, for this host alone (default: false)",
    );
    command.addOption(new Option("--healthz-port <port>", "deprecated").hideHelp());
    command.addOption(new Option("--metrics-port <port>", "deprecated").hideHelp());
    // kube-proxy links a library that has these; nothing reads them, there or here.
    command.addOption(new Option("--boot-id-file <file>").hideHelp());
    command.addOption(new Option("--machine-id-file <file>").hideHelp());
  }
  return command;
}

/** Add the options of ours, besides a backend's, that decide which rules a proxy has. */
export function addRuleOptions(command: Command): Command {
  return command
    .option(
      "--max-service-entries <n>",
      "endpoints times addresses of one Service, beyond which endpoints are left out; at most 500,000 count (default: the backend's)",
    )
    .option(
      "--service-metrics <n>",
      "count connections, rejects and drops for each Service port, and tell the n busiest in /metrics and turnout status (default: 0, nothing is counted)",
    );
}

/** What `--backend-option` takes, for help texts. */
export const OPTION_HELP = "an option of the backend itself; repeatable, lists with commas (name=a,b)";

/** Add --timeout. */
export function addTimeout(command: Command, purpose: string): Command {
  return command.option("--timeout <duration>", purpose, DEFAULT_TIMEOUT);
}

/** Gather the values of a repeatable option. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** What was typed for the options of each command, in its order: commander keeps the last value alone. */
const TYPED = new WeakMap<Command, Record<string, FlagText[]>>();

/** Keep whatever is typed for a command's options, for {@link typedFlags}. */
export function keepTyped(command: Command): void {
  const typed: Record<string, FlagText[]> = {};
  TYPED.set(command, typed);
  for (const name of command.options.map((option) => option.name()))
    command.on(`option:${name}`, (value: string | null) => (typed[name] ??= []).push(value ?? true));
}

/** kube-proxy's flags and ours that were typed, by name without dashes. */
export function typedFlags(command: Command): RawFlags {
  const names = new Set([...CONFIG_FLAGS.map((flag) => flag.name), ...NODE_FLAGS]);
  const typed = Object.fromEntries(Object.entries(TYPED.get(command) ?? {}).filter(([name]) => names.has(name)));
  const { verbose } = command.opts<CommonOptions>();
  if (typeof verbose === "string" && !SWITCHED.has(verbose)) typed["v"] ??= [levelOf(verbose)];
  return typed;
}

/** `--verbose=true` and `=false` switch it; anything else is a level. */
const SWITCHED: ReadonlySet<string> = new Set(["true", "false"]);

/** Options as commander holds them, those this module added. */
export interface CommonOptions {
  readonly source?: string;
  readonly config?: string;
  readonly apiCa?: string;
  readonly apiCert?: string;
  readonly apiKey?: string;
  readonly backend?: string;
  readonly backendOption?: readonly string[];
  readonly map?: readonly string[];
  readonly timeout?: string;
  readonly verbose?: string | true;
  readonly v?: string;
  readonly loggingFormat?: "text" | "json";
}

/** Tell whether errors should come with cause and stack. */
export function isVerbose(options: CommonOptions): boolean {
  return options.verbose !== undefined && options.verbose !== "false";
}

/** A level, without the = of `-v=4`. @throws {ProxyError} `invalid_object` for anything but a number. */
function levelOf(said: string): string {
  const text = said.replace(/^=/, "");
  if (!/^\d+$/.test(text))
    throw new ProxyError("invalid_object", `expected a level like 4, found "${text}"`, { object: "-v", hint: "pass a number, or none" });
  return text;
}

function logLevel({ verbose, v }: CommonOptions): LogLevel {
  const said = v ?? (verbose === true || verbose === "true" ? String(DEBUG_LEVEL) : verbose);
  if (said === undefined || said === "false") return "info";
  return Number(levelOf(said)) >= DEBUG_LEVEL ? "debug" : "info";
}

/** Make the log a command writes to: JSON for machines, short lines on a terminal. What a configuration file says counts where no flag does. */
export function logFor(options: CommonOptions, env: ProgramEnvironment, said?: LoggingSettings): Log {
  const format = options.loggingFormat ?? said?.format ?? (env.isTerminal ? "text" : "json");
  const isMore = (said?.verbosity ?? 0) >= DEBUG_LEVEL;
  return createLog({ format, level: isMore ? "debug" : logLevel(options), write: env.err, nowMs: env.nowMs });
}

/** A log for commands whose output is the point: only warnings and errors, unless -v. */
export function quietLogFor(options: CommonOptions, env: ProgramEnvironment): Log {
  const level = logLevel(options) === "debug" ? "debug" : "warn";
  return createLog({ format: options.loggingFormat ?? "text", level, write: env.err, nowMs: env.nowMs });
}

/**
 * Read --config and the flags.
 * @throws {ProxyError} `invalid_object` naming what is wrong.
 */
export async function configFor(command: Command, options: CommonOptions, env: ProgramEnvironment): Promise<LoadedConfig> {
  return loadConfig({
    flags: typedFlags(command),
    file: await readConfigFile(options.config, env.readFile),
    hostname: env.hostname,
    backendOptions: typedOptions(options),
  });
}

/** What was typed with --backend-option, and with --map, which is short for the option `map`. @throws {ProxyError} `invalid_object` for one without `=`. */
export function typedOptions({ backendOption = [], map = [] }: CommonOptions): readonly TypedOption[] {
  return [...backendOption.map(typedOption), ...map.map((entry): TypedOption => ["map", entry])];
}

/** --timeout in ms. @throws {ProxyError} `invalid_object` when it is no duration above 0. */
export function timeoutMs(options: CommonOptions): number {
  const ms = parseDuration(options.timeout ?? DEFAULT_TIMEOUT);
  if (ms <= 0) throw new ProxyError("invalid_object", "it must be longer than 0", { object: "--timeout" });
  return ms;
}
