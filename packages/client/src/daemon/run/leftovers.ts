import {
  abilitiesOf,
  openDataplane,
  ProxyError,
  withWorldOf,
  type Backend,
  type BackendModule,
  type IPFamily,
  type KernelObject,
  type Leftover,
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

/** Which causes were told of: what keeps one dataplane from being looked at often keeps others, in both families. */
export class ReportedCauses {
  readonly #reported = new Set<string>();

  /** Tell whether a cause is new, and note it. */
  isNew({ code, hint, message }: ProxyError): boolean {
    // Rights that lack are one cause, whatever couldn't be done without.
    const cause = code === "permission_denied" && hint !== undefined ? hint : message;
    if (this.#reported.has(cause)) return false;
    this.#reported.add(cause);
    return true;
  }
}

/** What {@link clearLeftovers} works with. */
export interface LeftoverWork {
  readonly family: IPFamily;
  readonly dataplanes: readonly Dataplane[];
  /** Why they stay in force, as a hint for people; undefined: they are removed. */
  readonly keptBecause: string | undefined;
  /** There is time to wait for connections to end. */
  readonly mayWait: boolean;
  /** Of all families of this process. */
  readonly reported: ReportedCauses;
  readonly log: World["log"];
}

/** What clearing leftovers came to. */
export interface Cleared {
  /** The dataplanes in which something was removed. */
  readonly removed: ReadonlySet<string>;
  /** Those in which something stays, and was told of. */
  readonly staying: ReadonlySet<string>;
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
 * Shape: to be called when the rules that replace them are in force; each dataplane by itself, and each place of it that may be seen or not.
 * Edges: what can't be looked for or removed is told in a line, one for each cause, and never fails anything. Where leftovers are kept, who can't
 * look says so in the debug log alone: nothing would have been done.
 */
export async function clearLeftovers(work: LeftoverWork, signal: AbortSignal): Promise<Cleared> {
  const removed = new Set<string>();
  const staying = new Set<string>();
  for (const { name, isInUse, visit } of work.dataplanes) {
    if (signal.aborted) break;
    const attempt = async (doing: () => Promise<void>): Promise<void> => {
      try {
        await doing();
      } catch (cause) {
        if (signal.aborted) return;
        if (!ProxyError.is(cause)) throw cause;
        staying.add(name);
        reportFailure(cause, name, work);
      }
    };
    await attempt(() =>
      visit(async (backend) => {
        for (const leftover of (await backend.leftovers?.(isInUse, signal)) ?? [])
          await attempt(async () => void ((await clearOne(leftover, work, signal)) ? removed : staying).add(name));
      }, signal),
    );
  }
  return { removed, staying };
}

/** Tells whether it is gone. @throws {ProxyError} what can't be looked for or removed. */
async function clearOne(
  { what, unseen, remove }: Leftover,
  { family, keptBecause, mayWait, log }: LeftoverWork,
  signal: AbortSignal,
): Promise<boolean> {
  if (unseen !== undefined) throw unseen;
  if (keptBecause !== undefined) {
    log.warn("rules of another proxy are in force beside ours", { family, what, hint: keptBecause });
    return false;
  }
  await remove(signal, mayWait);
  log.info("the rules of a former proxy were removed, ours are in force", { family, what });
  return true;
}

function reportFailure(error: ProxyError, backend: string, { family, keptBecause, reported, log }: LeftoverWork): void {
  const fields = { family, backend, error };
  if (keptBecause !== undefined || !reported.isNew(error)) log.debug("rules of a former proxy can't be looked for", fields);
  else if (error.code === "tool_missing") log.info("rules of a former proxy can't be looked for: its tool is not here", fields);
  else if (error.code === "permission_denied") log.warn("rules of a former proxy may still be in force", fields);
  else
    log.warn("rules of a former proxy may still be in force", {
      ...fields,
      // A cleanup would fail of what the error names itself.
      ...(error.hint === undefined ? { hint: `turnout cleanup --backend ${backend} removes its rules` } : {}),
    });
}
