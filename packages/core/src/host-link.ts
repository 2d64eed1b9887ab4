import type { Backend, KernelObject, Outcome } from "./backend.ts";
import { ProxyError } from "./errors.ts";
import type { Ledger } from "./ledger.ts";
import type { IPFamily } from "./objects.ts";
import type { AppliedCount } from "./row-trials.ts";
import type { Clock, Log } from "./world.ts";

/** What a link works with. */
export interface HostLinkOptions<H, K extends KernelObject, S> {
  readonly backend: Backend<H, K, S>;
  readonly ledger: Ledger<K>;
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with each plan as text instead of applying it. */
  readonly dryRun?: ((text: string) => void) | undefined;
  /** The backend asks for another sync after so many ms. */
  readonly onRevisit: (afterMs: number) => void;
}

/**
 * Carries a ledger's difference to the host, and looks at the host where what the ledger believes of it may be wrong.
 *
 * Edges: it may be wrong at first, after {@link HostLink.distrust}, and after an application that threw.
 */
export class HostLink<H, K extends KernelObject, S> {
  readonly #options: HostLinkOptions<H, K, S>;
  #isKnown = false;
  /** The host was looked at once, and no application has thrown since: only a foreign hand can have made the ledger wrong. */
  #isOurs = false;

  constructor(options: HostLinkOptions<H, K, S>) {
    this.#options = options;
  }

  /** Nothing speaks against what the ledger believes: the next application doesn't look. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Look at the host before the next application. */
  distrust(): void {
    this.#isKnown = false;
  }

  /** Bring the host in step with the ledger. @throws {ProxyError} what the host, or one object, failed with; look again then. */
  async apply(signal: AbortSignal): Promise<AppliedCount> {
    const { backend, clock, dryRun, ledger, onRevisit } = this.#options;
    if (!this.#isKnown) {
      // Before the reading: an audit asked for meanwhile must not be forgotten.
      this.#isKnown = true;
      await this.#look(signal);
    }
    const delta = ledger.delta(clock.nowMs());
    if (delta.put.length + delta.remove.length + delta.lingering.length === 0) return { put: 0, removed: 0 };
    const plan = backend.plan(delta);
    let outcome: Outcome<K> = {};
    if (dryRun === undefined) {
      this.#isOurs = false;
      outcome = await backend.apply(plan, signal).catch(asOperatingError);
      this.#isOurs = true;
    } else dryRun(backend.explain?.(plan) ?? JSON.stringify(plan, undefined, 2));
    ledger.commit(delta, outcome);
    if (outcome.revisitAfterMs !== undefined) onRevisit(outcome.revisitAfterMs);
    const failure = outcome.failed?.values().next().value;
    if (failure !== undefined) throw failure;
    return { put: delta.put.length, removed: delta.remove.length };
  }

  /**
   * Read what the host holds. Where that can't be done there any more (`host_unsupported`) and nothing of ours failed, what we did is taken to
   * be there: following what changes is worth more than finding what a foreign hand undid.
   */
  async #look(signal: AbortSignal): Promise<void> {
    const { backend, family, ledger, log } = this.#options;
    try {
      ledger.adopt(await backend.observe(signal));
      this.#isOurs = true;
    } catch (error) {
      if (!this.#isOurs || !ProxyError.is(error, "host_unsupported")) return asOperatingError(error);
      log.warn("the host can't be looked at; what was put there is taken to be there", { family, error: error.message });
    }
  }
}

/** Whatever a backend's dealings with the host throw is the host's doing. */
function asOperatingError(cause: unknown): never {
  throw ProxyError.from(cause, "tool_failed", "the host could not be dealt with");
}
