import type { KernelObject } from "../contract/backend.ts";
import { ProxyError } from "../model/errors.ts";
import type { AppliedCount, HostLink } from "./host-link.ts";
import type { IPFamily } from "../model/api-objects.ts";
import type { SyncObserver } from "./observer.ts";
import { tryRows } from "./row-trials.ts";
import type { WantedRows } from "./wanted-rows.ts";
import type { Clock, Log } from "../contract/world.ts";

/** The first wait after a failure, in ms; each later one is twice as long. */
export const FIRST_RETRY_MS = 250;

/** What reconciling needs. */
export interface ReconcilerOptions<H, K extends KernelObject, S> {
  readonly wanted: WantedRows<H, K>;
  readonly hostLink: HostLink<H, K, S>;
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: SyncObserver;
  /** Longest wait, in ms, before what the host refused is tried again. */
  readonly retryMs: number;
}

/** Failures that no row is to blame for: a lock that somebody holds, a tool or a right that is gone. Fewer rows would fail, too. */
function isAboutHost(error: unknown): boolean {
  return (["timed_out", "permission_denied", "tool_missing"] as const).some((code) => ProxyError.is(error, code));
}

/**
 * Brings the host in step with what is wanted, so that what the host refuses concerns nothing else.
 *
 * Shape: an object that fails by itself rests. Where a whole plan fails, the host is observed and the whole difference tried; when that fails
 * too, the rows that changed are left as the host has them and tried in halves. What is refused is retried with doubling waits.
 * Edges: when the host refuses all of several rows the sync has failed; nothing that was in force is taken away meanwhile.
 */
export class Reconciler<H, K extends KernelObject, S> {
  readonly #options: ReconcilerOptions<H, K, S>;
  #retryAtMs = 0;
  #retries = 0;
  #wasRefused = false;

  constructor(options: ReconcilerOptions<H, K, S>) {
    this.#options = options;
  }

  /** When what the host refused is due again, ms since the epoch; undefined: it refuses nothing. */
  get retryAtMs(): number | undefined {
    return this.#isRefused() ? this.#retryAtMs : undefined;
  }

  /** What the host refuses now: rows (kept as they were, or with an object that failed), and objects that failed. */
  get refused(): { readonly rows: readonly string[]; readonly objects: readonly string[] } {
    const { ledger, held, failing } = this.#options.wanted;
    return { rows: [...new Set([...held, ...failing])], objects: [...ledger.failed.keys()] };
  }

  /** Try what changed, and what is due again. @throws what the host failed with. */
  async reconcile(signal: AbortSignal): Promise<AppliedCount> {
    const { clock, retryMs, wanted } = this.#options;
    const known = new Set(wanted.ledger.failed.keys());
    const before = new Set([...known, ...wanted.held]);
    const isDue = clock.nowMs() >= this.#retryAtMs;
    if (isDue) {
      for (const key of wanted.held) wanted.release(key);
      wanted.ledger.retryFailed();
    }
    const count = await this.#bringInForce(signal);
    if (!this.#isRefused()) this.#retryAtMs = this.#retries = 0;
    else if (isDue) this.#retryAtMs = clock.nowMs() + Math.min(retryMs, FIRST_RETRY_MS * 2 ** this.#retries++);
    else if ([...wanted.held, ...wanted.ledger.failed.keys()].some((one) => !before.has(one))) {
      // What fails for the first time waits no longer because something else has failed for long.
      this.#retries = 1;
      this.#retryAtMs = Math.min(this.#retryAtMs, clock.nowMs() + FIRST_RETRY_MS);
    }
    this.#tell(known);
    return count;
  }

  #isRefused(): boolean {
    const { held, ledger } = this.#options.wanted;
    return held.size + ledger.failed.size > 0;
  }

  /** Try what changed; if that fails the whole difference; if that fails too, and a row can be to blame, row by row. */
  async #bringInForce(signal: AbortSignal): Promise<AppliedCount> {
    const { family, hostLink, log } = this.#options;
    let failure: unknown;
    for (let tries = hostLink.isKnown ? 2 : 1; tries > 0; tries--) {
      try {
        return await hostLink.apply(signal);
      } catch (error) {
        hostLink.distrust();
        if (signal.aborted || !ProxyError.is(error)) throw error;
        if (failure === undefined) log.warn("a sync failed, comparing everything with the host", { family, error: error.message });
        failure = error;
      }
    }
    if (isAboutHost(failure)) throw failure;
    return await this.#applyRowByRow(signal);
  }

  async #applyRowByRow(signal: AbortSignal): Promise<AppliedCount> {
    const { wanted } = this.#options;
    wanted.leaveHeld();
    wanted.suspect();
    const keys = wanted.pending.filter((key) => !wanted.held.has(key));
    for (const key of keys) wanted.suspend(key);
    try {
      return await this.#tryRows(keys, signal);
    } catch (error) {
      for (const key of keys) if (!wanted.held.has(key)) wanted.release(key);
      throw error;
    }
  }

  async #tryRows(keys: readonly string[], signal: AbortSignal): Promise<AppliedCount> {
    const { family, hostLink, log, wanted } = this.#options;
    const before = await hostLink.apply(signal);
    const { put, removed, refused } = await tryRows(keys, {
      release: (key) => wanted.release(key),
      suspend: (key) => wanted.suspend(key),
      apply: () => hostLink.apply(signal),
      onRefusal: (error) => {
        if (signal.aborted || !ProxyError.is(error)) throw error;
        hostLink.distrust();
      },
    });
    const [blame] = refused.values();
    if (blame !== undefined && keys.length > 1 && refused.size === keys.length && before.put + before.removed + put + removed === 0) {
      // Not one of several: it is the host that fails, not a row.
      this.#retryAtMs = 0;
      throw blame;
    }
    for (const [row, error] of refused) {
      wanted.hold(row);
      log.error("row refused by the host, kept as it was", { family, row, error: error.message });
    }
    // What trials left half done of the refused rows, and what nothing has to wait for any more.
    const after = await this.#putBack(signal);
    return { put: before.put + put + after.put, removed: before.removed + removed + after.removed };
  }

  /** Put held rows back as they were; where the host refuses that, too, they stay as it has them. */
  async #putBack(signal: AbortSignal): Promise<AppliedCount> {
    const { hostLink, wanted } = this.#options;
    try {
      return await hostLink.apply(signal);
    } catch (error) {
      hostLink.distrust();
      if (signal.aborted || !ProxyError.is(error) || isAboutHost(error)) throw error;
      wanted.leaveHeld();
      return await hostLink.apply(signal);
    }
  }

  /** @param known objects that had failed before */
  #tell(known: ReadonlySet<string>): void {
    const { family, log, observer, wanted } = this.#options;
    const { failed } = wanted.ledger;
    const isRefused = this.#isRefused();
    if (isRefused || this.#wasRefused) observer.quarantined({ family, ...this.refused });
    this.#wasRefused = isRefused;
    for (const [object, error] of failed) {
      if (known.has(object)) continue;
      const rows = [...wanted.ledger.ownersOf(new Set([object]))];
      const whose = rows.length > 0 ? { rows: rows.join(", ") } : {};
      log.error("an object is not in force on the host, everything else is", { family, object, ...whose, error: error.message });
    }
  }
}
