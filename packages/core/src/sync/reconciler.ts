import type { KernelObject } from "../contract/backend.ts";
import { ProxyError } from "../model/errors.ts";
import { Backoff } from "./backoff.ts";
import type { AppliedCount, HostLink } from "./host-link.ts";
import type { IPFamily } from "../model/api-objects.ts";
import { tryInHalves } from "../model/halves.ts";
import type { SyncObserver } from "./observer.ts";
import type { WantedRows } from "./wanted-rows.ts";
import type { Clock, Log } from "../contract/world.ts";

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

/** Something that the host refuses. */
export interface Refusal {
  /** The object that failed, by `objectId`; undefined: a row as a whole, which is kept as it was. */
  readonly object: string | undefined;
  /** The rows that go without it. */
  readonly rows: readonly string[];
  /** What the host said last. */
  readonly error: ProxyError;
  /** Ms since the epoch. */
  readonly sinceMs: number;
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
 * Edges: when the host refuses all rows of several namespaces the sync has failed; nothing that was in force is taken away meanwhile.
 */
export class Reconciler<H, K extends KernelObject, S> {
  readonly #options: ReconcilerOptions<H, K, S>;
  readonly #backoff: Backoff;
  /** Of rows and of objects, each by what it is about. */
  readonly #refusals = new Map<string, Refusal>();
  #retryAtMs = 0;
  #wasRefused = false;

  constructor(options: ReconcilerOptions<H, K, S>) {
    this.#options = options;
    this.#backoff = new Backoff(options.retryMs);
  }

  /** When what the host refused is due again, ms since the epoch; undefined: it refuses nothing. */
  get retryAtMs(): number | undefined {
    return this.#isRefused() ? this.#retryAtMs : undefined;
  }

  /** What the host refuses now: rows (kept as they were, or with an object that failed), and objects that failed. */
  get refused(): { readonly rows: readonly string[]; readonly objects: readonly string[] } {
    const { ledger, quarantined, failing } = this.#options.wanted;
    return { rows: [...new Set([...quarantined, ...failing])], objects: [...ledger.failed.keys()] };
  }

  /** The same with what the host said. */
  get refusals(): readonly Refusal[] {
    return [...this.#refusals.values()];
  }

  /** Try what changed, and what is due again. @throws what the host failed with. */
  async reconcile(signal: AbortSignal): Promise<AppliedCount> {
    const { clock, wanted } = this.#options;
    const known = new Set(wanted.ledger.failed.keys());
    const before = new Set([...known, ...wanted.quarantined]);
    const isDue = clock.nowMs() >= this.#retryAtMs;
    if (isDue) {
      for (const key of wanted.quarantined) wanted.release(key);
      wanted.ledger.retryFailed();
    }
    const count = await this.#makeActive(signal);
    if (!this.#isRefused()) {
      this.#retryAtMs = 0;
      this.#backoff.reset();
    } else if (isDue) this.#retryAtMs = clock.nowMs() + this.#backoff.next();
    else if ([...wanted.quarantined, ...wanted.ledger.failed.keys()].some((one) => !before.has(one))) {
      // What fails for the first time waits no longer because something else has failed for long.
      this.#backoff.reset();
      this.#retryAtMs = Math.min(this.#retryAtMs, clock.nowMs() + this.#backoff.next());
    }
    this.#notify(known);
    return count;
  }

  #isRefused(): boolean {
    const { quarantined, ledger } = this.#options.wanted;
    return quarantined.size + ledger.failed.size > 0;
  }

  /** Try what changed; if that fails the whole difference; if that fails too, and a row can be to blame, row by row. */
  async #makeActive(signal: AbortSignal): Promise<AppliedCount> {
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
    wanted.leaveQuarantined();
    wanted.suspect();
    const keys = wanted.pending.filter((key) => !wanted.quarantined.has(key) && !wanted.isUntried(key));
    for (const key of keys) wanted.suspend(key);
    try {
      return await this.#tryRows(keys, signal);
    } catch (error) {
      for (const key of keys) if (!wanted.quarantined.has(key)) wanted.release(key);
      throw error;
    }
  }

  async #tryRows(keys: readonly string[], signal: AbortSignal): Promise<AppliedCount> {
    const { family, hostLink, log, wanted } = this.#options;
    const counts = [await this.#applyAll(signal)];
    const refused = await tryInHalves(keys, {
      attempt: async (some) => {
        for (const key of some) wanted.release(key);
        counts.push(await this.#applyAll(signal));
      },
      onFailure: (error, some) => {
        if (signal.aborted || !ProxyError.is(error)) throw error;
        hostLink.distrust();
        for (const key of some) wanted.suspend(key);
      },
    });
    const [blame] = refused.values();
    const isAnyApplied = counts.some(({ put, removed }) => put + removed > 0);
    const namespaces = new Set(keys.map((key) => key.slice(0, key.indexOf("/"))));
    if (blame !== undefined && namespaces.size > 1 && refused.size === keys.length && !isAnyApplied) {
      // Not one row of several namespaces: it is the host that fails. Rows of one namespace alone may all be refused for what its tenant wrote.
      this.#retryAtMs = 0;
      throw blame;
    }
    for (const [row, error] of refused) {
      wanted.quarantine(row);
      this.#note(undefined, [row], error as ProxyError);
      log.error("row refused by the host, kept as it was", { family, row, error: String((error as ProxyError).message) });
    }
    // What trials left half done of the refused rows, and what nothing has to wait for any more.
    return sumOf([...counts, await this.#putBack(signal)]);
  }

  /** Apply, turn after turn, until nothing is deferred: what is refused then is to blame. */
  async #applyAll(signal: AbortSignal): Promise<AppliedCount> {
    const counts: AppliedCount[] = [];
    do counts.push(await this.#options.hostLink.apply(signal));
    while (counts.at(-1)?.deferred !== 0 && !signal.aborted);
    return sumOf(counts);
  }

  /** Put quarantined rows back as they were; where the host refuses that, too, they stay as it has them. */
  async #putBack(signal: AbortSignal): Promise<AppliedCount> {
    const { hostLink, wanted } = this.#options;
    try {
      return await this.#applyAll(signal);
    } catch (error) {
      hostLink.distrust();
      if (signal.aborted || !ProxyError.is(error) || isAboutHost(error)) throw error;
      wanted.leaveQuarantined();
      return await this.#applyAll(signal);
    }
  }

  /** @param object undefined: the one row as a whole */
  #note(object: string | undefined, rows: readonly string[], error: ProxyError): void {
    const key = object === undefined ? `row ${rows.join()}` : `object ${object}`;
    const sinceMs = this.#refusals.get(key)?.sinceMs ?? this.#options.clock.nowMs();
    this.#refusals.set(key, { object, rows, error, sinceMs });
  }

  /** @param known objects that had failed before */
  #notify(known: ReadonlySet<string>): void {
    const { family, log, observer, wanted } = this.#options;
    const { failed } = wanted.ledger;
    for (const [key, { object, rows }] of this.#refusals) {
      const isStill = object === undefined ? rows.some((row) => wanted.quarantined.has(row)) : failed.has(object);
      if (!isStill) this.#refusals.delete(key);
    }
    for (const [object, error] of failed) {
      const rows = [...wanted.ledger.ownersOf([object])];
      this.#note(object, rows, error);
      if (known.has(object)) continue;
      const whose = rows.length > 0 ? { rows: rows.join(", ") } : {};
      log.error("an object is not in force on the host, everything else is", { family, object, ...whose, error: error.message });
    }
    const isRefused = this.#isRefused();
    if (isRefused || this.#wasRefused) observer.quarantined({ family, ...this.refused });
    this.#wasRefused = isRefused;
  }
}

/** Add up what one application after the other did: deferred is what the last one left. */
function sumOf(counts: readonly AppliedCount[]): AppliedCount {
  const sum = (one: "put" | "removed"): number => counts.reduce((total, count) => total + count[one], 0);
  return { put: sum("put"), removed: sum("removed"), deferred: counts.at(-1)?.deferred ?? 0 };
}
