import { otherDataplanes } from "@turnout/client/daemon";
import { FAMILIES, ProxyError, type BackendModule, type Leftover, type Plain, type World } from "@turnout/core";

/** Rules of a service proxy that are on this host. */
export interface FoundRules extends Pick<Leftover, "what" | "by" | "isLive" | "options"> {
  /** The backend that can go on from them, or remove them. */
  readonly backend: string;
}

/** A backend to take, and why. */
export interface BackendReason {
  readonly backend: string;
  /** For people, e.g. `table ip kube-proxy is in force here`. */
  readonly because: string;
  /** Options with which it adopts what was found. */
  readonly options: Readonly<Record<string, Plain>>;
}

/** A former life of ours comes first, then the chains that both make alike, then kube-proxy's own. */
const OWNERS: readonly FoundRules["by"][] = ["turnout", undefined, "kube-proxy"];

/**
 * Say which backends go on from what is in force on a host, the best first; empty: nothing is. Pure.
 *
 * Shape: each backend once, with what speaks for it most. Ours come before kube-proxy's: a restart or an upgrade must not change the backend.
 * Among equals the order in which they were found decides. All that is live of a backend is named.
 * Edges: what no packet goes by speaks for nothing. Options count where all live rules of that backend agree on them.
 */
export function reasonsOf(found: readonly FoundRules[]): readonly BackendReason[] {
  const live = found.filter(({ isLive }) => isLive !== false);
  const ranked = OWNERS.flatMap((owner) => live.filter(({ by }) => by === owner));
  return ranked
    .filter(({ backend }, index) => ranked.findIndex((other) => other.backend === backend) === index)
    .map(({ backend, by, options = {} }) => {
      const own = ranked.filter((one) => one.backend === backend);
      const wishes = new Set(own.filter((one) => one.by === by).map((one) => JSON.stringify(one.options ?? {})));
      const because = `${own.map(({ what }) => what).join(" and ")} in force here`;
      return { backend, because, options: wishes.size === 1 ? options : {} };
    });
}

/**
 * Look for what service proxies left in force, in all dataplanes of these backends.
 *
 * Shape: the first family in which there is something; the other one, where it has something at all, is like it.
 * Edges: reads only. Where a backend can't look, for want of a tool or of rights, there is nothing of it; the debug log says so.
 */
export async function findRules(modules: readonly BackendModule[], world: World, signal: AbortSignal): Promise<readonly FoundRules[]> {
  for (const family of FAMILIES) {
    const found: FoundRules[] = [];
    for (const { name, visit } of otherDataplanes(modules, family, world)) {
      try {
        await visit(async (backend) => {
          const leftovers = (await backend.leftovers?.(false, signal)) ?? [];
          found.push(...leftovers.map((one) => ({ ...one, backend: name })));
          for (const { unseen: error } of leftovers)
            if (error !== undefined) world.log.debug("rules of a former proxy can't be looked for", { family, backend: name, error });
        }, signal);
      } catch (error) {
        if (signal.aborted || !ProxyError.is(error)) throw error;
        world.log.debug("rules of a former proxy can't be looked for", { family, backend: name, error });
      }
    }
    if (found.some(({ isLive }) => isLive !== false)) return found;
  }
  return [];
}
