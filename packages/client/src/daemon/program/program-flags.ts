import { ProxyError } from "@turnout/core";
import { typedOption, type TypedOption } from "../config/backend-options.ts";
import { CONFIG_FLAGS, type FlagText, type RawFlags } from "../config/config-flags.ts";
import { switchOf } from "../config/config-kinds.ts";
import { parseDuration } from "../config/duration.ts";
import { DEFAULT_TARGET, tlsFiles, type TlsFiles } from "../../api/watch/target.ts";

/** A backend program's command line, read. */
export interface ProgramFlags {
  /** Where the node-state server is. */
  readonly api: string;
  /** For a node-state server over TLS. */
  readonly tls: TlsFiles | undefined;
  /** A KubeProxyConfiguration file. */
  readonly config: string | undefined;
  readonly once: boolean;
  readonly dryRun: boolean;
  /** Leave in force what a former proxy left. */
  readonly keepOtherRules: boolean;
  /** Set what takes full rights, and exit. */
  readonly initOnly: boolean;
  /** Give up none of this process's capabilities. */
  readonly keepCapabilities: boolean;
  /** A node-state server that knows of no Service is believed. */
  readonly allowEmpty: boolean;
  /** How long --once may take. */
  readonly timeoutMs: number;
  /** Remove the rules of the backend and of former proxies in its dataplane, and exit. */
  readonly cleanup: boolean;
  /** Write the configuration with its defaults to this file, and exit; "" is not given. */
  readonly writeConfigTo: string;
  readonly verbose: boolean;
  readonly backendOptions: readonly TypedOption[];
  /** kube-proxy's flags and `node-name`, as the configuration takes them. */
  readonly raw: RawFlags;
  readonly wants: "run" | "help" | "version";
}

/** What a flag of ours takes: a value, or nothing. */
const OWN: Readonly<Record<string, "value" | "switch">> = {
  api: "value",
  "api-ca": "value",
  "api-cert": "value",
  "api-key": "value",
  config: "value",
  once: "switch",
  "dry-run": "switch",
  "keep-other-rules": "switch",
  "allow-empty": "switch",
  "web-page": "switch",
  "init-only": "switch",
  "keep-capabilities": "switch",
  timeout: "value",
  cleanup: "switch",
  "write-config-to": "value",
  // kube-proxy links a library that has these two; nothing reads them, there or here.
  "boot-id-file": "value",
  "machine-id-file": "value",
  verbose: "switch",
  "backend-option": "value",
  help: "switch",
  version: "switch",
};
const SHORT: Readonly<Record<string, string>> = { "-h": "--help", "-V": "--version" };
/** Flags beside the table of configuration fields that the configuration reads too. */
const CONFIGURED: readonly string[] = ["node-name", "max-service-entries", "healthz-port", "metrics-port", "service-metrics"];
const TIMEOUT = "1m";

function bad(object: string, what: string, hint = "see --help"): ProxyError {
  return new ProxyError("invalid_object", what, { object, hint });
}

/** A short flag by its long name. -v takes a level as kube-proxy's does, and may stand alone. */
function longForm(arg: string, next: string | undefined): string {
  const [, level] = /^-v=?(.+)$/s.exec(arg) ?? [];
  if (level !== undefined) return `--v=${level}`;
  if (arg === "-v") return next !== undefined && /^\d+$/.test(next) ? "--v" : "--verbose";
  return SHORT[arg] ?? arg;
}

/** Split arguments into names and values; switches have "true" unless they say something else after "=". */
function pairsOf(args: readonly string[]): readonly (readonly [name: string, value: string, isBare: boolean])[] {
  const pairs: (readonly [string, string, boolean])[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = longForm(args[at] ?? "", args[at + 1]);
    const [, typed, , said] = /^--([^=]+)(=(.*))?$/s.exec(arg) ?? [];
    // Underscores in a flag's name are dashes, as kube-proxy has it.
    const name = typed?.replaceAll("_", "-");
    if (name === undefined) throw bad(arg, "it is no flag");
    const flag = CONFIG_FLAGS.find((one) => one.name === name);
    const takes = Object.hasOwn(OWN, name) ? OWN[name] : flag !== undefined && flag.placeholder === undefined ? "switch" : "value";
    if (flag === undefined && !CONFIGURED.includes(name) && !Object.hasOwn(OWN, name)) throw bad(`--${name}`, "unknown flag");
    if (said !== undefined) pairs.push([name, said, false]);
    else if (takes === "switch") pairs.push([name, "true", true]);
    else {
      const value = args[(at += 1)];
      if (value === undefined) throw bad(`--${name}`, "the flag needs a value");
      pairs.push([name, value, false]);
    }
  }
  return pairs;
}

/** Read a command line. @throws {ProxyError} `invalid_object` naming the flag. */
export function parseProgramFlags(args: readonly string[]): ProgramFlags {
  const own = new Map<string, string>();
  const raw: Record<string, FlagText[]> = {};
  const options: TypedOption[] = [];
  for (const [name, value, isBare] of pairsOf(args)) {
    if (name === "backend-option") options.push(typedOption(value));
    else if (name !== "web-page" && Object.hasOwn(OWN, name)) own.set(name, value);
    else (raw[name] ??= []).push(isBare ? true : value);
  }
  const isOn = (name: string): boolean => switchOf(`--${name}`, own.get(name));
  const timeoutMs = parseDuration(own.get("timeout") ?? TIMEOUT);
  if (timeoutMs <= 0) throw bad("--timeout", "it must be longer than 0");
  return {
    api: own.get("api") ?? DEFAULT_TARGET,
    tls: tlsFiles({ ca: own.get("api-ca"), cert: own.get("api-cert"), key: own.get("api-key") }, "--api"),
    config: own.get("config"),
    once: isOn("once"),
    dryRun: isOn("dry-run"),
    keepOtherRules: isOn("keep-other-rules"),
    allowEmpty: isOn("allow-empty"),
    initOnly: isOn("init-only"),
    keepCapabilities: isOn("keep-capabilities"),
    timeoutMs,
    cleanup: isOn("cleanup"),
    writeConfigTo: own.get("write-config-to") ?? "",
    verbose: isOn("verbose"),
    backendOptions: options,
    raw,
    wants: isOn("help") ? "help" : own.get("version") === "raw" || isOn("version") ? "version" : "run",
  };
}

const OWN_HELP: readonly (readonly [flag: string, help: string])[] = [
  ["--api <target>", `where the node-state server ("turnout serve") listens (default: ${DEFAULT_TARGET})`],
  ["--api-ca, --api-cert, --api-key <file>", "for a node-state server at tls://HOST:PORT: its authority, our certificate and key"],
  ["--node-name <name>", "the node to program (default: this host's name)"],
  ["--config <file>", "a KubeProxyConfiguration file; kube-proxy's other flags are then ignored"],
  ["--max-service-entries <n>", "endpoints times addresses of one Service, beyond which it is left out (default: the backend's)"],
  [
    "--service-metrics <n>",
    "count connections, rejects and drops for each Service port, and tell the n busiest (default: 0, nothing is counted)",
  ],
  ["--web-page", "serve a page for people beside the metrics, for this host alone"],
  ["--once", "sync one time, leave the rules in place and exit"],
  ["--dry-run", "print what would be done, and do nothing"],
  ["--keep-other-rules", "leave in force what another proxy left where this backend works, instead of removing it"],
  ["--allow-empty", "a node-state server without any Service is right: remove the rules that are in force at the start"],
  ["--init-only", "set the kernel parameters that take full rights, and exit; later starts need less"],
  ["--keep-capabilities", "don't give up the Linux capabilities that the backend does not need"],
  ["--cleanup", "remove the rules of this backend, and of former proxies where it works, and exit"],
  ["--write-config-to <file>", "write flags and configuration with all defaults as a configuration file, and exit"],
  ["--timeout <duration>", `with --once: give up after this long (default: ${TIMEOUT})`],
  ["--backend-option <name=value>", "an option of the backend itself; repeatable, lists with commas (name=a,b)"],
  ["-v, --verbose", "log more; errors come with cause and stack"],
  ["-V, --version", "print the version"],
  ["-h, --help", "print this"],
];

/** Write the help of a backend program. */
export function programHelp(name: string, backend: string): string {
  const line = ([flag, help]: readonly [string, string]): string => `  ${flag.padEnd(36)} ${help}`;
  const shown = CONFIG_FLAGS.filter(({ isShown }) => isShown).map((flag): readonly [string, string] => [
    `--${flag.name}${flag.placeholder === undefined ? "" : ` <${flag.placeholder}>`}`,
    flag.help,
  ]);
  return [
    `Usage: ${name} [options]`,
    "",
    `Programs this node's services with ${backend}, as a node-state server computes them, and keeps them in step.`,
    "",
    "Options:",
    ...OWN_HELP.map(line),
    "",
    "Options of kube-proxy, same names and meaning:",
    ...shown.map(line),
    "",
    "SIGTERM ends it and leaves the rules in force. Exit codes: 0 done, 1 failed, 2 bad usage or configuration.",
    "",
  ].join("\n");
}
