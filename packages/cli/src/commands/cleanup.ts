import { cleanBackend, type CleanupScope } from "@turnout/client/daemon";
import { ProxyError, type Log, type Plain, type World } from "@turnout/core";
import type { Command } from "commander";
import type { Environment } from "../environment.ts";
import { addBackendOptions, addLogOptions, backendOptions, quietLogFor, type CommonOptions } from "../options.ts";
import { EXAMPLE_BACKEND, loadBackend, namesOn } from "../registry.ts";

interface CleanupOptions extends CommonOptions {
  readonly all?: true;
}

const EXAMPLES = `
Examples:
  turnout cleanup                  # every backend that comes with turnout
  turnout cleanup --backend ${EXAMPLE_BACKEND}

Only what is ours is removed. Exits with 1 if anything could not be.`;

/** Add `turnout cleanup`. */
export function addCleanup(program: Command, env: Environment): void {
  const command = program.command("cleanup").description("remove everything turnout has put into this host's kernel");
  addBackendOptions(command, undefined);
  command.option("--all", "every backend that comes with turnout (the default)");
  addLogOptions(command);
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: CleanupOptions) => {
    await cleanUp(options, env);
  });
}

async function cleanUp(options: CleanupOptions, env: Environment): Promise<void> {
  if (options.all === true && options.backend !== undefined) {
    throw new ProxyError("invalid_object", "--all and --backend exclude each other", { object: "turnout cleanup" });
  }
  const names = options.backend === undefined || options.backend === "auto" ? namesOn(env.platform) : [options.backend];
  const raw = backendOptions(options.backendOption ?? []);
  const log = quietLogFor(options, env);
  throwFirst(await cleanAll({ names, raw, scope: "own", world: env.createWorld(log), env }), log);
}

/**
 * Do what kube-proxy --cleanup does: remove the rules of all backends that come with turnout, and those of all modes of kube-proxy.
 *
 * Edges: where a tool is not installed, a line says so; its rules can't have been written from here.
 * @throws {ProxyError} the first failure, when all has been tried.
 */
export async function cleanUpHost(world: World, env: Environment): Promise<void> {
  const errors = await cleanAll({ names: namesOn(env.platform), raw: {}, scope: "all", world, env });
  const isMissing = (error: ProxyError): boolean => error.code === "tool_missing";
  for (const error of errors.filter(isMissing)) world.log.info("rules can't be looked for: the tool is not here", { error });
  throwFirst(
    errors.filter((error) => !isMissing(error)),
    world.log,
  );
}

interface CleanAll {
  readonly names: readonly string[];
  readonly raw: Readonly<Record<string, Plain>>;
  readonly scope: CleanupScope;
  readonly world: World;
  readonly env: Environment;
}

/** Clean up backend by backend; gives what failed. */
async function cleanAll({ names, raw, scope, world, env }: CleanAll): Promise<readonly ProxyError[]> {
  const errors: ProxyError[] = [];
  for (const name of names) {
    const module = await loadBackend(name, env.workingDirectory);
    for (const { family, error } of await cleanBackend(module, { options: raw, scope, world, signal: env.signal })) {
      if (error === undefined) env.out(`${module.name} ${family}: clean\n`);
      else errors.push(error);
    }
  }
  return errors;
}

/** Every failure is told, those of one cause once; the first one is the exit's reason. */
function throwFirst(errors: readonly ProxyError[], log: Log): void {
  for (const error of errors) if (error.message !== errors[0]?.message) log.error("cleanup failed", { error });
  if (errors[0] !== undefined) throw errors[0];
}
