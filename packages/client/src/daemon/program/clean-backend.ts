import {
  abilitiesOf,
  cleanUpBackend,
  FAMILIES,
  openDataplane,
  ProxyError,
  withWorldOf,
  type Backend,
  type BackendModule,
  type IPFamily,
  type KernelObject,
  type Plain,
  type World,
} from "@turnout/core";

/** Whose rules are removed: those of the backend, or those of former proxies in its dataplane too. */
export type CleanupScope = "own" | "all";

/** What cleaning up works with. */
export interface CleanupWork {
  /** Values of --backend-option. */
  readonly options: Readonly<Record<string, Plain>>;
  readonly scope: CleanupScope;
  readonly world: World;
  readonly signal: AbortSignal;
}

/** How cleaning up went in one family. */
export interface Cleaned {
  readonly family: IPFamily;
  /** What went wrong; undefined: nothing is left. */
  readonly error: ProxyError | undefined;
}

/**
 * Remove what is ours of one backend, each family by itself. The dataplane is one: it may hold something for both.
 *
 * Edges: failing is told of each family; a family can be clean although the other is not.
 * @throws {ProxyError} for bad options, and where both families are clean but closing fails.
 */
export async function cleanBackend(module: BackendModule, { options, scope, world, signal }: CleanupWork): Promise<readonly Cleaned[]> {
  const parsed = module.parseOptions(options);
  const families = FAMILIES.filter((family) => abilitiesOf(module).capabilities[family] === true);
  const errorIn = (family: IPFamily, cause: unknown): ProxyError =>
    ProxyError.from(cause, "tool_failed", "cleanup failed", { object: `backend ${module.name} ${family}` });
  const cleaned: Cleaned[] = [];
  try {
    await withWorldOf(module, world, async (own) => {
      const dataplane = await openDataplane(module, parsed, own, signal);
      try {
        for (const family of families) {
          const error = await cleanFamily(dataplane.family(family), scope, world, signal).then(
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

async function cleanFamily(
  backend: Backend<unknown, KernelObject, unknown>,
  scope: CleanupScope,
  { clock, log }: World,
  signal: AbortSignal,
): Promise<void> {
  await cleanUpBackend(backend, clock, signal);
  if (scope === "own") return;
  const unseen: ProxyError[] = [];
  for (const leftover of (await backend.leftovers?.(false, signal)) ?? []) {
    if (leftover.unseen === undefined) {
      await leftover.remove(signal, false);
      log.info("the rules of a former proxy were removed", { what: leftover.what });
    } else unseen.push(leftover.unseen);
  }
  if (unseen[0] !== undefined) throw unseen[0];
}
