import { ProxyError, type IPFamily, type World } from "@turnout/core";
import type { OtherProxy } from "../insight/proxy-view.ts";
import type { Dataplane } from "./leftovers.ts";

/** Looking costs a few processes, and where another proxy has many rules more than that: in the end it is done this often. */
const MAX_WAIT_MS = 3_600_000;

/** How to find the other one, and what then. */
const HINT =
  "remove its DaemonSet (kubectl -n kube-system get daemonset kube-proxy), or stop it (pgrep -a kube-proxy), then restart this proxy: it removes those rules";

/** What {@link OtherProxies} works with. */
export interface OtherProxiesOptions {
  readonly family: IPFamily;
  readonly dataplanes: readonly Dataplane[];
  /** Those in which something stayed when this proxy took over, of which a line told. */
  readonly staying: ReadonlySet<string>;
  /** When to look first; each further wait is twice as long. */
  readonly firstWaitMs: number;
  readonly clock: World["clock"];
  readonly log: World["log"];
  /** How many dataplanes of others are in force, after each look. */
  readonly onPoll: (count: number) => void;
}

/**
 * Notices another service proxy on this node, which makes rules in a dataplane where its last ones were removed, or where there were none.
 *
 * Shape: each is told once, and again if it was gone meanwhile. Nothing is removed: the other one would make it again.
 * Edges: a dataplane that can't be looked at, for want of rights that were given up, stays as it was seen last.
 */
export class OtherProxies {
  readonly #options: OtherProxiesOptions;
  readonly #staying: Set<string>;
  readonly #found = new Map<string, OtherProxy>();

  constructor(options: OtherProxiesOptions) {
    this.#options = options;
    this.#staying = new Set(options.staying);
  }

  /** The live rules of others that were seen last. */
  get found(): readonly OtherProxy[] {
    return [...this.#found.values()];
  }

  /** Look again and again until aborted. */
  async watch(signal: AbortSignal, onFirstLook: () => void): Promise<void> {
    const { firstWaitMs, clock } = this.#options;
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
      await clock.sleep(waitMs, signal);
      if (signal.aborted) return;
      await this.#look(signal);
      onFirstLook();
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { family, dataplanes, log, onPoll } = this.#options;
    for (const { name, isInUse, visit } of dataplanes) {
      if (signal.aborted) return;
      try {
        await visit(async (backend) => {
          const all = (await backend.leftovers?.(isInUse, signal)) ?? [];
          const live = all.filter(({ isLive, unseen }) => isLive !== false && unseen === undefined);
          if (live.length > 0) this.#saw(name, live.map(({ what }) => what).join(", "));
          else if (!all.some(({ unseen }) => unseen !== undefined)) this.#missed(name);
        }, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (!ProxyError.is(error)) throw error;
        log.debug("rules of another proxy can't be looked for", { family, backend: name, error });
      }
    }
    onPoll(this.#found.size);
  }

  #saw(backend: string, what: string): void {
    const { family, clock, log } = this.#options;
    const known = this.#found.get(backend);
    this.#found.set(backend, { backend, what, sinceMs: known?.sinceMs ?? clock.nowMs() });
    if (known !== undefined || this.#staying.has(backend)) return;
    log.warn("another service proxy runs on this node: its rules are in force beside ours", { family, what, hint: HINT });
  }

  #missed(backend: string): void {
    this.#found.delete(backend);
    this.#staying.delete(backend);
  }
}
