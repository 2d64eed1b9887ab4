import { objectId, type Backend, type KernelObject } from "../contract/backend.ts";
import type { Clock } from "../contract/world.ts";
import { ProxyError } from "../model/errors.ts";
import type { Ledger } from "./ledger.ts";

/** What readiness is read from. */
export interface ReadinessOptions<K extends KernelObject> {
  readonly backend: Pick<Backend<never, K, never>, "observe" | "isOptional">;
  readonly ledger: Ledger<K>;
  /** Rows that are not in force, and that the host has not refused. */
  readonly waitingRows: () => readonly string[];
  /** The host refuses something. */
  readonly isRefusing: () => boolean;
  readonly clock: Clock;
  /** How long no state may come before the host is looked at without one, in ms. */
  readonly retryMs: number;
}

/**
 * Whether packets go by the rules: each row of the first state was tried, not all are refused, and the host has the skeleton. Later states, and what the host refuses of
 * rows, change nothing.
 *
 * Edges: rules of a former process count. Where the host has some, a first sync that fails is as good as done, and so is one for which no state comes.
 */
export class Readiness<K extends KernelObject> {
  readonly #options: ReadinessOptions<K>;
  /** Rows of the first state that were not tried yet; undefined: no state came. */
  #untried: ReadonlySet<string> | undefined;
  #isFirstDone = false;
  #missing: string | undefined;

  constructor(options: ReadinessOptions<K>) {
    this.#options = options;
  }

  /** Why packets don't go by the rules; "": they do. */
  get problem(): string {
    if (!this.#isFirstDone) return "the first sync is not done";
    return this.#missing === undefined ? "" : `the host lacks ${this.#missing}`;
  }

  /** While no state comes, look whether a former process left this skeleton on the host. Never rejects for operating errors. */
  async watch(skeleton: () => readonly K[], signal: AbortSignal): Promise<void> {
    const { backend, clock, retryMs } = this.#options;
    for (;;) {
      await clock.sleep(retryMs, signal);
      if (signal.aborted || this.#isFirstDone || this.#untried !== undefined) return;
      try {
        const observed = await backend.observe(signal);
        const isThere = (object: K): boolean => observed?.objects.has(objectId(object)) === true || backend.isOptional?.(object) === true;
        if (this.#untried === undefined)
          this.#isFirstDone = observed !== undefined && observed.objects.size > 0 && skeleton().every(isThere);
      } catch (error) {
        if (!ProxyError.is(error)) throw error;
      }
    }
  }

  /** A state came, with these rows. */
  heard(rows: readonly { readonly key: string }[]): void {
    this.#untried ??= new Set(rows.map(({ key }) => key));
  }

  /** A sync ended. */
  synced(how: "succeeded" | "failed"): void {
    const { backend, ledger, waitingRows, isRefusing } = this.#options;
    this.#missing = ledger.missing((object) => backend.isOptional?.(object) === true);
    if (this.#isFirstDone) return;
    if (how === "failed") {
      this.#isFirstDone = ledger.hasRows;
      return;
    }
    const waiting = new Set(waitingRows());
    this.#untried = new Set([...(this.#untried ?? [])].filter((row) => waiting.has(row)));
    // A host that takes no row of any namespace does not work.
    this.#isFirstDone = this.#untried.size === 0 && (ledger.hasRows || !isRefusing());
  }
}
