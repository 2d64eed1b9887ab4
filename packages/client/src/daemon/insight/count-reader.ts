import { ProxyError, type Backend, type Clock, type KernelObject, type Log, type ServicePort } from "@turnout/core";
import { ServiceCounts, type CountedRows } from "./service-counts.ts";

/** What counts are read with. */
export interface CountReaderOptions {
  readonly backend: Pick<Backend<unknown, KernelObject, unknown>, "counts">;
  readonly rows: () => ReadonlyMap<string, ServicePort>;
  readonly ownersOf: (object: string) => ReadonlySet<string>;
  /** The rows that are told at most. */
  readonly rowsMax: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Who asks within this time is told the same. */
const FRESH_MS = 5_000;
/** Of the time reading may take at most a tenth: with iptables at 10,000 Services it takes seconds. */
const REST_PER_READING = 10;
/** Who asks waits no longer than this, and is told what was read before. */
const PATIENCE_MS = 2_000;

/**
 * Reads what a backend counted for each row, when somebody asks and no more often than each five seconds, or as takes a tenth of the time.
 *
 * Edges: what can't be read is logged once, and leaves what was read before.
 */
export class CountReader {
  readonly #options: CountReaderOptions;
  readonly #counts = new ServiceCounts();
  #dueMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #isReported = false;

  constructor(options: CountReaderOptions) {
    this.#options = options;
  }

  /** The rows that most was counted for; undefined: nothing is counted here. */
  async busiest(signal: AbortSignal): Promise<CountedRows | undefined> {
    const { backend, rows, rowsMax, clock } = this.#options;
    if (rowsMax === 0 || backend.counts === undefined) return undefined;
    if (this.#reading === undefined && clock.nowMs() >= this.#dueMs) {
      this.#reading = this.#read(signal).finally(() => (this.#reading = undefined));
    }
    if (this.#reading !== undefined) {
      const done = new AbortController();
      await Promise.race([this.#reading, clock.sleep(PATIENCE_MS, AbortSignal.any([signal, done.signal]))]);
      done.abort();
    }
    return this.#counts.busiest(rows(), rowsMax);
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { backend, rows, ownersOf, clock, log } = this.#options;
    const startMs = clock.nowMs();
    try {
      const read = await backend.counts?.(signal, (object) => ownersOf(object).size > 0);
      const ownerOf = (object: string): string | undefined => {
        const owners = ownersOf(object);
        return owners.size === 1 ? owners.values().next().value : undefined;
      };
      this.#counts.take(read ?? new Map(), rows(), ownerOf, clock.nowMs());
      this.#isReported = false;
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      if (!this.#isReported && !signal.aborted) log.warn("what was counted for Services can't be read", { error });
      this.#isReported = true;
    }
    const nowMs = clock.nowMs();
    this.#dueMs = nowMs + Math.max(FRESH_MS, REST_PER_READING * (nowMs - startMs));
  }
}
