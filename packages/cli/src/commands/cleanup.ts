import {
  cleanBackend,
  optionsFromFlags,
  type CleanupScope,
  type TypedOption,
  addLogOptions,
  quietLogFor,
  typedOptions,
  type CommonOptions,
} from "@turnout/client/daemon";
import { ProxyError, type IPFamily, type Log, type World } from "@turnout/core";
import type { Command } from "commander";
import type { Environment } from "../environment.ts";
import { addBackendOptions } from "../options.ts";
import { EXAMPLE_BACKEND, loadBackend, namesOn } from "../registry.ts";

interface CleanupOptions extends CommonOptions {
  readonly all?: true;
}

const EXAMPLES = `
Examples:
  turnout cleanup                  # every backend that comes with turnout
  turnout cleanup --backend ${EXAMPLE_BACKEND}

Only what is ours is removed. Exits with 1 if anything could not be, also where a backend that was named can't be looked for because its tool is
not here. Without a name that is a line, unless the kernel has something of that kind.`;

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
  const isNamed = options.backend !== undefined && options.backend !== "auto";
  const names = isNamed ? [options.backend] : namesOn(env.platform);
  const typed = typedOptions(options);
  const log = quietLogFor(options, env);
  const failures = await cleanAll({ names, typed, scope: "own", world: env.createWorld(log), env });
  for (const { backend, family, error } of failures.filter(isToolMissing))
    env.out(`${backend} ${family}: not looked for, ${error.what}${error.hint === undefined ? "" : ` (${error.hint})`}\n`);
  throwFirst(isNamed ? failures : failures.filter((failure) => !isToolMissing(failure)), log);
}

/**
 * Do what kube-proxy --cleanup does: remove the rules of all backends that come with turnout, and those of all modes of kube-proxy.
 *
 * Edges: where a tool is not installed, a line says so; it is a failure where the kernel has something that only the tool could tell.
 * @throws {ProxyError} the first failure, when all has been tried.
 */
export async function cleanUpHost(world: World, env: Environment): Promise<void> {
  const failures = await cleanAll({ names: namesOn(env.platform), typed: [], scope: "all", world, env });
  for (const failure of failures.filter(isToolMissing)) world.log.info("rules can't be looked for: the tool is not here", { ...failure });
  throwFirst(
    failures.filter((failure) => !isToolMissing(failure)),
    world.log,
  );
}

/** Nobody can look, and nothing says that there is anything: a backend that knows better says so with another code. */
function isToolMissing({ error }: Failure): boolean {
  return error.code === "tool_missing";
}

/** What went wrong with one backend in one family. */
interface Failure {
  readonly backend: string;
  readonly family: IPFamily;
  readonly error: ProxyError;
}

interface CleanAll {
  readonly names: readonly string[];
  readonly typed: readonly TypedOption[];
  readonly scope: CleanupScope;
  readonly world: World;
  readonly env: Environment;
}

/** Clean up backend by backend; gives what failed. */
async function cleanAll({ names, typed, scope, world, env }: CleanAll): Promise<readonly Failure[]> {
  const failures: Failure[] = [];
  for (const name of names) {
    const module = await loadBackend(name, env.workingDirectory);
    const options = optionsFromFlags(typed, module);
    for (const { family, error } of await cleanBackend(module, { options, scope, world, signal: env.signal })) {
      if (error === undefined) env.out(`${module.name} ${family}: clean\n`);
      else failures.push({ backend: module.name, family, error });
    }
  }
  return failures;
}

/** Every failure is told, those of one cause once; the first one is the exit's reason. */
function throwFirst(failures: readonly Failure[], log: Log): void {
  const [first] = failures;
  for (const failure of failures) if (failure.error.message !== first?.error.message) log.error("cleanup failed", { ...failure });
  if (first !== undefined) throw first.error;
}
