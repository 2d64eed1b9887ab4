import {
  abilitiesOf,
  cleanUpBackend,
  FAMILIES,
  openDataplane,
  ProxyError,
  withWorldOf,
  type BackendModule,
  type IPFamily,
  type Log,
  type Plain,
  type World,
} from "@turnout/core";
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
  const world = env.createWorld(log);
  const errors: ProxyError[] = [];
  for (const name of names) {
    const module = await loadBackend(name, env.workingDirectory);
    for (const { family, error } of await cleanBackend(module, raw, world, env.signal)) {
      if (error === undefined) env.out(`${module.name} ${family}: clean\n`);
      else errors.push(error);
    }
  }
  throwFirst(errors, log);
}

/** Every failure is told, those of one cause once; the first one is the exit's reason. */
function throwFirst(errors: readonly ProxyError[], log: Log): void {
  for (const error of errors) if (error.message !== errors[0]?.message) log.error("cleanup failed", { error });
  if (errors[0] !== undefined) throw errors[0];
}

/** How cleaning up went in one family. */
interface Cleaned {
  readonly family: IPFamily;
  /** What went wrong; undefined: nothing is left. */
  readonly error: ProxyError | undefined;
}

/** Remove what is ours of one backend, each family by itself. The dataplane is one: it may hold something for both. */
async function cleanBackend(
  module: BackendModule,
  raw: Readonly<Record<string, Plain>>,
  world: World,
  signal: AbortSignal,
): Promise<readonly Cleaned[]> {
  const parsed = module.parseOptions(raw);
  const families = FAMILIES.filter((family) => abilitiesOf(module).capabilities[family] === true);
  const errorIn = (family: IPFamily, cause: unknown): ProxyError =>
    ProxyError.from(cause, "tool_failed", "cleanup failed", { object: `backend ${module.name} ${family}` });
  const cleaned: Cleaned[] = [];
  try {
    await withWorldOf(module, world, async (own) => {
      const dataplane = await openDataplane(module, parsed, own, signal);
      try {
        for (const family of families) {
          const error = await cleanUpBackend(dataplane.family(family), world.clock, signal).then(
            () => undefined,
            (cause: unknown) => errorIn(family, cause),
          );
          cleaned.push({ family, error });
        }
      } finally {
        await dataplane.close(signal);
      }
    });
    return cleaned;
  } catch (cause) {
    const rest = families.slice(cleaned.length);
    if (rest.length === 0) throw ProxyError.from(cause, "tool_failed", "closing the backend failed", { object: `backend ${module.name}` });
    return [...cleaned, ...rest.map((family) => ({ family, error: errorIn(family, cause) }))];
  }
}
