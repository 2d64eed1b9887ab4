import { inspect } from "node:util";
import { ProxyError, type BackendModule, type KernelObject, type Log, type World } from "@turnout/core";
import { createLog } from "../../process/log.ts";
import { readConfigFile, writeConfigFile } from "../config/config-file.ts";
import { invalid, loadConfig, placeOf, type LoadedConfig } from "../config/loaded-config.ts";
import { configFileText, runConfig, type RunConfig } from "../config/run-config.ts";
import type { HostAccess } from "../host/give-up-rights.ts";
import { initializeHost } from "../run/init-only.ts";
import { run } from "../run/main.ts";
import { Metrics } from "../metrics/metrics.ts";
import { withTimeout } from "../../process/timeout.ts";
import { parseTarget } from "../../api/watch/target.ts";
import { openNodeLink } from "../../api/watch/watch-node-state.ts";
import { cleanBackend } from "./clean-backend.ts";
import { parseProgramFlags, programHelp, type ProgramFlags } from "./program-flags.ts";

/** What a backend program touches besides its arguments; tests pass their own. */
export interface ProgramEnvironment {
  /** The program's name, for help and errors, e.g. `turnout-nft`. */
  readonly name: string;
  readonly version: string;
  readonly createWorld: (options: { readonly log: Log }) => World;
  /** Standard output: what was asked for. */
  readonly out: (text: string) => void;
  /** Standard error: logs and errors. */
  readonly err: (text: string) => void;
  readonly isTerminal: boolean;
  readonly hostname: string;
  /** Ends the program; rules stay in force. */
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Undefined: settings of the host and rights of this process stay as they are. */
  readonly host?: Omit<HostAccess, "paths">;
  /** @throws what node:fs throws. */
  readonly readFile: (path: string) => Promise<string>;
  /** @throws what node:fs throws. */
  readonly writeFile: (path: string, text: string) => Promise<void>;
}

const FAILED = 1;
const BAD_USAGE = 2;
/** klog prints more from this level on; ours is debug. */
const DEBUG_LEVEL = 4;

/**
 * Run a backend as a program of its own that follows a node-state server: one command line, to its end.
 *
 * Shape: `args` without node and script; resolves to the exit code: 0 done, 1 failed, 2 bad usage or configuration.
 * Edges: an operating error is one line on standard error, with cause and stack under -v; any other rejects.
 */
export async function runBackendProgram<H, K extends KernelObject, S>(
  module: BackendModule<unknown, H, K, S>,
  args: readonly string[],
  env: ProgramEnvironment,
): Promise<number> {
  let isVerbose = false;
  try {
    const flags = parseProgramFlags(args);
    isVerbose = flags.verbose;
    if (flags.wants === "help") env.out(programHelp(env.name, module.name));
    else if (flags.wants === "version") env.out(`${env.version}\n`);
    else await runWith(module, flags, env);
    return 0;
  } catch (error) {
    if (!ProxyError.is(error)) throw error;
    env.err(`${env.name}: ${error.message}\n${isVerbose ? `${inspect(error)}\n` : ""}`);
    return ProxyError.is(error, "invalid_object") ? BAD_USAGE : FAILED;
  }
}

async function runWith<H, K extends KernelObject, S>(
  module: BackendModule<unknown, H, K, S>,
  flags: ProgramFlags,
  env: ProgramEnvironment,
): Promise<void> {
  const file = await readConfigFile(flags.config, env.readFile);
  const loaded = loadConfig({ flags: flags.raw, file, hostname: env.hostname, backendOptions: flags.backendOptions });
  if (flags.writeConfigTo !== "") return await writeConfigFile(flags.writeConfigTo, configFileText(loaded, module), env.writeFile);
  const config = runConfig(loaded, module);
  const format = loaded.logging.format ?? (env.isTerminal ? "text" : "json");
  const isMore = flags.verbose || (loaded.logging.verbosity ?? 0) >= DEBUG_LEVEL;
  const log = createLog({ format, level: isMore ? "debug" : "info", write: env.err, nowMs: env.nowMs });
  for (const warning of config.warnings) log.warn(warning);
  const world = env.createWorld({ log });
  if (flags.cleanup) {
    const cleaned = await cleanBackend(module, { options: config.backendOptions, scope: "all", world, signal: env.signal });
    for (const { error } of cleaned) if (error !== undefined) throw error;
    return;
  }
  const { clock } = world;
  if (flags.initOnly) return await initializeHost(module, { config, world, files: env.host?.files, signal: env.signal });
  refuseLimits(config, loaded, log);
  const { nodeName, settings, bindAddress } = config;
  const version = `${env.name} ${env.version}`;
  log.info(`${env.name} starts`, { version: env.version, api: flags.api, node: nodeName });
  const metrics = new Metrics({ clock, version: env.version, features: () => config.features });
  const link = await openNodeLink({
    target: flags.api,
    tls: flags.tls,
    nodeName,
    settings,
    bindAddress,
    version,
    clock,
    log,
    failOnRefusal: flags.once,
    awaitsNode: true,
    onHealth: (part, problem) => metrics.sourceHealth(part, problem),
  });
  const body = (signal: AbortSignal): Promise<void> =>
    run(module, {
      config,
      feed: (family) => link.feed(family),
      world,
      signal,
      eligibility: () => link.eligibility,
      metrics,
      source: `api:${flags.api}`,
      once: flags.once,
      host: hostFor(flags, env),
      // Other backends are other programs: one that is gone took with it what could tell its rules.
      leftovers: { others: () => Promise.resolve([]), isKept: flags.keepOtherRules },
      allowsEmpty: flags.allowEmpty,
      readFile: (path) => readAgain(path, env),
      ...(flags.dryRun ? { dryRun: (text: string) => env.out(`${text.trimEnd()}\n`) } : {}),
    });
  try {
    if (flags.once) await withTimeout(`node-state server ${flags.api}`, flags.timeoutMs, clock, env.signal, body);
    else await body(env.signal);
  } finally {
    await link.close();
    metrics.close();
  }
  const stopped = module.residence === "process" ? "stopped, nothing is answered any more" : "stopped, rules stay in force";
  log.info(flags.dryRun ? "done, nothing was applied" : flags.once ? "done, rules stay in place" : stopped);
}

/** What this process opens again: its configuration, and the way to the node-state server. */
function hostFor({ config, api, tls, keepCapabilities }: ProgramFlags, { host }: ProgramEnvironment): HostAccess | undefined {
  if (host === undefined) return undefined;
  const { files, rights, memory } = host;
  const target = parseTarget(api);
  const paths = [config, target.kind === "unix" ? target.path : undefined, tls?.ca, tls?.cert, tls?.key].filter(
    (path) => path !== undefined,
  );
  return { files, paths, memory, ...(rights === undefined || keepCapabilities ? {} : { rights }) };
}

async function readAgain(path: string, env: ProgramEnvironment): Promise<string | undefined> {
  // A file that is being replaced is missing for a moment; its next version is what counts.
  return await env.readFile(path).then(
    (text) => text,
    () => undefined,
  );
}

/** Make sure that a node-state server's rows are not taken for limited here. @throws {ProxyError} `invalid_object` where the file limits them; a gate is only warned of. */
function refuseLimits({ allowedAddresses }: RunConfig, loaded: LoadedConfig, log: Log): void {
  const elsewhere = "the process that reads Services limits their addresses";
  if (allowedAddresses.strictSourceRanges === true) {
    const hint = "leave it out here, and give --strict-source-ranges to turnout serve";
    throw invalid(placeOf("turnout.strictSourceRanges", loaded), elsewhere, hint);
  }
  if (allowedAddresses.externalIPs === undefined) return;
  const hint = "give it to the node-state server (turnout serve)";
  log.warn(`the feature gate AllowServiceExternalIPs=false has no effect here: ${elsewhere}`, { hint });
}
