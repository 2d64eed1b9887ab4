import type { BackendModule, World } from "@turnout/core";
import { ProxyError } from "@turnout/core";
import type { Command } from "commander";
import { withTimeout } from "../../process/timeout.ts";
import { writeConfigFile } from "../config/config-file.ts";
import { switchOf } from "../config/config-kinds.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import { configFileText, type RunConfig } from "../config/run-config.ts";
import { Metrics } from "../metrics/metrics.ts";
import { initializeHost } from "../run/init-only.ts";
import { run, type RunOptions } from "../run/main.ts";
import type { ProgramEnvironment } from "./environment.ts";
import { addConfigFlags, addTimeout, addVerbose, apiTls, configFor, logFor, timeoutMs, type CommonOptions } from "./options.ts";

/** A switch as commander has it. */
type Switch = string | true;

/** The options of a command that runs a proxy. */
export interface ProxyOptions extends CommonOptions {
  readonly once?: Switch;
  readonly dryRun?: Switch;
  readonly keepOtherRules?: Switch;
  readonly allowEmpty?: Switch;
  readonly initOnly?: Switch;
  readonly keepCapabilities?: Switch;
  readonly cleanup?: Switch;
  readonly writeConfigTo?: string;
  readonly version?: Switch;
}

/** Where a proxy's rows come from, once it is open. */
export interface OpenSource extends Pick<RunOptions, "feed" | "eligibility" | "report" | "onEvent" | "why"> {
  /** Have the source work while `body` does; whichever fails first ends the other. */
  during(body: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>;
  /** What is known of why nothing is complete yet; undefined: nothing. */
  readonly hint?: () => string | undefined;
}

/** What a source is opened with. */
export interface SourceParts {
  readonly module: BackendModule;
  readonly config: RunConfig;
  readonly world: World;
  readonly metrics: Metrics;
  readonly isOnce: boolean;
  readonly isDry: boolean;
}

/** What a program that runs a proxy does in its own way. */
export interface ProxyProgram {
  /** Its name, for logs. */
  readonly name: string;
  /** `kube`, `file:PATH` or `api:TARGET`. */
  readonly source: string;
  /** What `--write-config-to` reads options by. */
  readonly declared: () => Promise<Pick<BackendModule, "options">>;
  /** Do what `--cleanup` asks for. */
  readonly cleanUp: (loaded: LoadedConfig, world: World) => Promise<void>;
  readonly choose: (loaded: LoadedConfig, world: World) => Promise<{ readonly module: BackendModule; readonly config: RunConfig }>;
  readonly open: (parts: SourceParts) => Promise<OpenSource>;
  readonly leftovers: (module: BackendModule, isKept: boolean) => Promise<Pick<RunOptions, "leftovers">>;
}

/** Add what a command that runs a proxy takes, besides its source and its backend. */
export function addProxyOptions(command: Command, cleanup: string): Command {
  command
    .option("--once [true|false]", "sync one time, leave the rules in place and exit")
    .option("--dry-run [true|false]", "print what would be done, and do nothing")
    .option("--keep-other-rules [true|false]", "leave in force what another proxy left, instead of removing it once ours is")
    .option("--allow-empty [true|false]", "accept a source without any Service: remove the rules that are in force at the start")
    .option("--init-only [true|false]", "set the kernel parameters that take full rights, and exit; later starts need less")
    .option("--keep-capabilities [true|false]", "don't give up the Linux capabilities that the backend does not need")
    .option("--cleanup [true|false]", cleanup)
    .option("--write-config-to <file>", "write flags and configuration with all defaults as a configuration file, and exit");
  addTimeout(command, "with --once: give up after this long");
  return addConfigFlags(addVerbose(command), "all");
}

/**
 * Be a proxy, or do what is asked for instead of that: print the version, write the configuration, clean up, initialize the host.
 * @throws {ProxyError} `invalid_object` for bad usage; what ends the proxy.
 */
export async function runProxy(command: Command, options: ProxyOptions, env: ProgramEnvironment, program: ProxyProgram): Promise<void> {
  const { version, platform, signal } = env;
  if (options.version !== undefined && options.version !== "false")
    return env.out(options.version === "raw" ? `${JSON.stringify({ version, platform })}\n` : `${version}\n`);
  const loaded = await configFor(command, options, env);
  if (options.writeConfigTo)
    return await writeConfigFile(options.writeConfigTo, configFileText(loaded, await program.declared()), env.writeFile);
  const isOnce = switchOf("--once", options.once);
  const log = logFor(options, env, loaded.logging);
  if (switchOf("--cleanup", options.cleanup)) {
    configFileText(loaded); // kube-proxy checks its configuration first, too
    return await program.cleanUp(loaded, env.createWorld(log));
  }
  let residence: BackendModule["residence"] = "kernel";
  try {
    residence = await runChosen(loaded, options, env, program);
  } catch (error) {
    // Stopped while a backend was still being chosen: a daemon that was stopped is done, a one-time sync is not.
    if (isOnce || !signal.aborted || !ProxyError.is(error, "canceled")) throw error;
  }
  if (!switchOf("--init-only", options.initOnly)) log.info(lastWords(isOnce, switchOf("--dry-run", options.dryRun), residence));
}

async function runChosen(
  loaded: LoadedConfig,
  options: ProxyOptions,
  env: ProgramEnvironment,
  program: ProxyProgram,
): Promise<BackendModule["residence"]> {
  const { signal, version } = env;
  const { name, source } = program;
  const world = env.createWorld(logFor(options, env, loaded.logging));
  const { clock, log } = world;
  const [isOnce, isDry] = [switchOf("--once", options.once), switchOf("--dry-run", options.dryRun)];
  const limitMs = isOnce ? timeoutMs(options) : undefined;
  const { module, config } = await program.choose(loaded, world);
  for (const warning of config.warnings) log.warn(warning);
  if (switchOf("--init-only", options.initOnly)) {
    await initializeHost(module, { config, world, files: env.host?.files, signal });
    return module.residence;
  }
  log.info(`${name} starts`, { version, backend: module.name, source, node: config.nodeName });
  const metrics = new Metrics({ clock, version, features: () => config.features });
  try {
    const { during, hint, ...opened } = await program.open({ module, config, world, metrics, isOnce, isDry });
    const leftovers = await program.leftovers(module, switchOf("--keep-other-rules", options.keepOtherRules));
    const whole = (stop: AbortSignal): Promise<void> =>
      during(
        (either) =>
          run(module, {
            ...opened,
            ...leftovers,
            config,
            world,
            signal: either,
            metrics,
            source,
            once: isOnce,
            allowsEmpty: switchOf("--allow-empty", options.allowEmpty),
            host: hostFor(source, options, config, env),
            readFile: (path) => readAgain(path, env),
            ...(isDry ? { dryRun: (text: string) => env.out(`${text.trimEnd()}\n`) } : {}),
          }),
        stop,
      );
    if (limitMs !== undefined) await withTimeout(`source ${source}`, limitMs, clock, signal, whole, hint);
    else await whole(signal);
  } finally {
    metrics.close();
  }
  return module.residence;
}

/** What this process opens again: its configuration, credentials, and the way to a node-state server. */
function hostFor(source: string, options: ProxyOptions, { kubeconfig }: RunConfig, { host }: ProgramEnvironment): RunOptions["host"] {
  if (host === undefined) return undefined;
  const { files, rights, memory } = host;
  const [, place] = /^(?:api:unix:(?:\/\/)?|file:)(.*)$/s.exec(source) ?? [];
  const { ca, cert, key } = apiTls(options) ?? {};
  const paths = [options.config, source === "kube" ? kubeconfig : undefined, place, ca, cert, key].filter((path) => path !== undefined);
  const keepsAll = rights === undefined || switchOf("--keep-capabilities", options.keepCapabilities);
  return { files, paths, memory, ...(keepsAll ? {} : { rights }) };
}

function lastWords(isOnce: boolean, isDry: boolean, residence: BackendModule["residence"]): string {
  if (residence === "process" && !isDry) return "stopped, nothing is answered any more";
  if (isDry) return isOnce ? "done, nothing was applied" : "stopped, nothing was applied";
  return isOnce ? "done, rules stay in place" : "stopped, rules stay in force";
}

async function readAgain(path: string, env: ProgramEnvironment): Promise<string | undefined> {
  // A file that is being replaced is missing for a moment; its next version is what counts.
  return await env.readFile(path).then(
    (text) => text,
    () => undefined,
  );
}
