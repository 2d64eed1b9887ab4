import {
  FAMILIES,
  ProxyError,
  type Backend,
  type BackendModule,
  type IPFamily,
  type KernelObject,
  type Log,
  type Plain,
  type World,
} from "@turnout/core";
import type { Command } from "commander";
import type { Environment } from "../environment.ts";
import { addBackendOptions, addLogOptions, backendOptions, quietLogFor, type CommonOptions } from "../options.ts";
import { KNOWN_BACKENDS, loadBackend } from "../registry.ts";

interface CleanupOptions extends CommonOptions {
  readonly all?: true;
}

const EXAMPLES = `
Examples:
  turnout cleanup                  # every backend that comes with turnout
  turnout cleanup --backend nft

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
  const names = options.backend === undefined || options.backend === "auto" ? KNOWN_BACKENDS.map(({ name }) => name) : [options.backend];
  const raw = backendOptions(options.backendOption ?? []);
  const log = quietLogFor(options, env);
  const world = env.createWorld(log);
  const errors: ProxyError[] = [];
  try {
    for (const name of names) {
      const module = await loadBackend(name, env.workingDirectory);
      for (const family of FAMILIES) {
        if (module.capabilities[family] !== true) continue;
        const error = await cleanFamily(module, raw, family, world, env.signal);
        if (error === undefined) env.out(`${module.name} ${family}: clean\n`);
        else errors.push(error);
      }
    }
  } finally {
    world.close();
  }
  throwFirst(errors, log);
}

/** Every failure is told, those of one cause once; the first one is the exit's reason. */
function throwFirst(errors: readonly ProxyError[], log: Log): void {
  for (const error of errors) if (error.message !== errors[0]?.message) log.error("cleanup failed", { error });
  if (errors[0] !== undefined) throw errors[0];
}

/** Remove what is ours of one backend and family; resolves to what went wrong, if anything. */
export async function cleanFamily(
  module: BackendModule,
  raw: Readonly<Record<string, Plain>>,
  family: IPFamily,
  world: World,
  signal: AbortSignal,
): Promise<ProxyError | undefined> {
  const parsed = module.parseOptions(raw);
  try {
    const backend: Backend<unknown, KernelObject, unknown> = await module.open(parsed, family, world, signal);
    try {
      if (backend.cleanup === undefined) await removeObserved(backend, module.name, world, signal);
      else await backend.cleanup(signal);
    } finally {
      await backend.close(signal);
    }
    return undefined;
  } catch (error) {
    return ProxyError.from(error, "tool_failed", "cleanup failed", { object: `backend ${module.name} ${family}` });
  }
}

/** The contract's default: whatever observe finds is removed. */
async function removeObserved(
  backend: Backend<unknown, KernelObject, unknown>,
  name: string,
  world: World,
  signal: AbortSignal,
): Promise<void> {
  const observed = await backend.observe(signal);
  if (observed === undefined) throw new ProxyError("tool_failed", "what is on the host can't be told", { object: `backend ${name}` });
  const remove = [...observed.objects.values()];
  if (remove.length === 0 && observed.lingering.length === 0) return;
  const nowMs = world.clock.nowMs();
  const lingering = observed.lingering.map((object) => ({ object, sinceMs: nowMs }));
  const plan = backend.plan({ put: [], remove, lingering, nowMs });
  const outcome = await backend.apply(plan, signal);
  const failure = outcome.failed?.values().next().value;
  if (failure !== undefined) throw failure;
}
