import type { BackendModule, KernelObject } from "@turnout/core";
import { DEFAULT_TARGET } from "../../api/watch/target.ts";
import { openNodeLink } from "../../api/watch/watch-node-state.ts";
import { exitPrinted, guardOutput } from "../../process/standard-output.ts";
import { refuseAllowOptions } from "../config/refuse-limits.ts";
import { runConfig } from "../config/run-config.ts";
import { cleanBackend } from "./clean-backend.ts";
import { createCommand, runCommandLine } from "./command-line.ts";
import { processEnvironment, type ProgramEnvironment, type ProgramParts } from "./environment.ts";
import { addNodeOptions, apiTls, collect, OPTION_HELP } from "./options.ts";
import { addProxyOptions, runProxy, type OpenSource, type ProxyOptions, type SourceParts } from "./run-proxy.ts";

/** What a backend's own program says of itself. */
export interface BackendMainOptions extends ProgramParts {
  /** Default `turnout-` and the backend's name. */
  readonly name?: string;
}

interface BackendProgramOptions extends ProxyOptions {
  readonly api: string;
}

/**
 * Be a backend's own program: read this process's arguments, follow a node-state server until told to stop, and exit.
 *
 * Shape: the whole of a program is its imports and this call; see the README.
 */
export async function backendMain<H, K extends KernelObject, S>(
  module: BackendModule<unknown, H, K, S>,
  { name = `turnout-${module.name}`, ...parts }: BackendMainOptions,
): Promise<void> {
  guardOutput(name);
  await exitPrinted(await runBackendProgram(name, module, process.argv.slice(2), processEnvironment(parts)));
}

/**
 * Run a backend as a program of its own that follows a node-state server: one command line, to its end.
 *
 * Shape: `args` without node and script; resolves to the exit code: 0 done, 1 failed, 2 bad usage or configuration.
 */
export async function runBackendProgram(
  name: string,
  module: BackendModule,
  args: readonly string[],
  env: ProgramEnvironment,
): Promise<number> {
  const command = createCommand(name, env)
    .description(`Programs this node's Services with ${module.name}, as a node-state server computes them, and keeps them in step.`)
    .option("--api <target>", 'where the node-state server ("turnout serve") listens', DEFAULT_TARGET);
  addNodeOptions(command)
    .option("--backend-option <name=value>", OPTION_HELP, collect, [])
    .option("-V, --version [raw]", "print the version, and exit");
  addProxyOptions(command, "remove the rules of this backend, and of former proxies where it works, and exit");
  command.addHelpText(
    "after",
    "\nSIGTERM ends it and leaves the rules in force. Exit codes: 0 done, 1 failed, 2 bad usage or configuration.",
  );
  command.action(async (options: BackendProgramOptions) => {
    await runProxy(command, options, env, {
      name,
      source: `api:${options.api}`,
      declared: () => Promise.resolve(module),
      choose: (loaded) => Promise.resolve({ module, config: runConfig(loaded, module) }),
      cleanUp: async (loaded, world) => {
        const work = { options: runConfig(loaded, module).backendOptions, scope: "all", world, signal: env.signal } as const;
        for (const { error } of await cleanBackend(module, work)) if (error !== undefined) throw error;
      },
      open: (parts) => openLink(`${name} ${env.version}`, options, parts),
      // Other backends are other programs: one that is gone took with it what could tell its rules.
      leftovers: (_module, isKept) => Promise.resolve({ leftovers: { others: () => Promise.resolve([]), isKept } }),
    });
  });
  return await runCommandLine(command, args, env);
}

async function openLink(
  version: string,
  options: BackendProgramOptions,
  { config, world: { clock, log }, metrics, isOnce }: SourceParts,
): Promise<OpenSource> {
  refuseAllowOptions(config, log);
  const { nodeName, settings, bindAddress } = config;
  const link = await openNodeLink({
    target: options.api,
    tls: apiTls(options),
    nodeName,
    settings,
    bindAddress,
    version,
    clock,
    log,
    failOnRefusal: isOnce,
    awaitsNode: true,
    onHealth: (part, problem) => metrics.sources.note(part, problem),
  });
  return {
    feed: (family) => link.feed(family),
    eligibility: () => link.eligibility,
    during: async (body, signal) => {
      try {
        await body(signal);
      } finally {
        await link.close();
      }
    },
  };
}
