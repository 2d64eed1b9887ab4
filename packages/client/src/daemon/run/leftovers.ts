import {
  abilitiesOf,
  openDataplane,
  ProxyError,
  withWorldOf,
  type Backend,
  type BackendModule,
  type IPFamily,
  type KernelObject,
  type Rights,
  type World,
} from "@turnout/core";

/** What becomes of the rules that a former proxy left in force. */
export interface LeftoverOptions {
  /** The other backends whose rules may be there; asked for once the rules that replace them are in force. */
  readonly others: () => Promise<readonly BackendModule[]>;
  /** Only tell of them. */
  readonly isKept: boolean;
  /** What the other backends need to look for them and to remove them; default: nothing that the one in use doesn't. */
  readonly rights?: Rights;
}

/** What finding leftovers takes of a backend. */
export type Finder = Pick<Backend<unknown, KernelObject, unknown>, "leftovers">;

/** A dataplane in which there may be leftovers. */
export interface Dataplane {
  readonly name: string;
  /** Its backend serves from now on. */
  readonly isInUse: boolean;
  /** Work with its backend, which may be there only meanwhile. */
  visit(work: (backend: Finder) => Promise<void>, signal: AbortSignal): Promise<void>;
}

/** What {@link clearLeftovers} works with. */
export interface LeftoverWork {
  readonly family: IPFamily;
  readonly dataplanes: readonly Dataplane[];
  /** Why they stay in force, as a hint for people; undefined: they are removed. */
  readonly keptBecause: string | undefined;
  /** There is time to wait for connections to end. */
  readonly mayWait: boolean;
  readonly log: World["log"];
}

/** Why leftovers stay, if they do: somebody wants them to, or what would replace them is not there for good. */
export function reasonToKeep(isKept: boolean, isDryRun: boolean, residence: BackendModule["residence"]): string | undefined {
  if (isDryRun) return "a run that is not dry removes them once its own rules are in force";
  if (isKept) return "start without --keep-other-rules to have them removed";
  if (residence === "process")
    return "this backend stops answering when its process ends, so it keeps a former proxy's rules; the kernel obeys those first";
  return undefined;
}

/** The dataplanes of backends that are not in use: a visit opens one, and closes it again. */
export function otherDataplanes(modules: readonly BackendModule[], family: IPFamily, world: World): readonly Dataplane[] {
  return modules.flatMap((module): readonly Dataplane[] => {
    if (abilitiesOf(module).capabilities[family] !== true) return [];
    const visit = (work: (backend: Finder) => Promise<void>, signal: AbortSignal): Promise<void> =>
      withWorldOf(module, world, async (own) => {
        const dataplane = await openDataplane(module, module.parseOptions({}), own, signal);
        try {
          await work(dataplane.family(family));
        } finally {
          await dataplane.close(signal);
        }
      });
    return [{ name: module.name, isInUse: false, visit }];
  });
}

/**
 * Remove the rules of former proxies, or tell that they are in force.
 *
 * Shape: to be called when the rules that replace them are in force; each dataplane by itself.
 * Edges: what can't be looked for or removed is told in a line and never fails anything. Where leftovers are kept, who can't look says so in
 * the debug log alone: nothing would have been done.
 */
export async function clearLeftovers(work: LeftoverWork, signal: AbortSignal): Promise<void> {
  const { family, dataplanes, keptBecause, log } = work;
  for (const { name, isInUse, visit } of dataplanes) {
    if (signal.aborted) return;
    try {
      await visit((backend) => clearOne(backend, isInUse, work, signal), signal);
    } catch (cause) {
      if (signal.aborted) return;
      if (!ProxyError.is(cause)) throw cause;
      const fields = { family, backend: name, error: cause };
      if (keptBecause !== undefined) log.debug("rules of a former proxy can't be looked for", fields);
      else if (cause.code === "tool_missing") log.info("rules of a former proxy can't be looked for: its tool is not here", fields);
      else
        log.warn("rules of a former proxy may still be in force", {
          ...fields,
          hint: `turnout cleanup --backend ${name} removes its rules`,
        });
    }
  }
}

async function clearOne(
  backend: Finder,
  isInUse: boolean,
  { family, keptBecause, mayWait, log }: LeftoverWork,
  signal: AbortSignal,
): Promise<void> {
  for (const { what, remove } of (await backend.leftovers?.(isInUse, signal)) ?? []) {
    if (keptBecause !== undefined) log.warn("rules of another proxy are in force beside ours", { family, what, hint: keptBecause });
    else {
      await remove(signal, mayWait);
      log.info("the rules of a former proxy were removed, ours are in force", { family, what });
    }
  }
}
