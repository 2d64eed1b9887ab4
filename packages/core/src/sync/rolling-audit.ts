import { objectId } from "../contract/backend.ts";
import type { Backend, KernelObject, WhatIsLeft } from "../contract/backend.ts";
import { workMs } from "../contract/world.ts";
import type { Clock, Log } from "../contract/world.ts";
import type { IPFamily } from "../model/api-objects.ts";
import { isEqual } from "../model/equal.ts";
import { operatingError } from "../model/errors.ts";
import type { Ledger } from "./ledger.ts";

/** What an audit works with. */
export interface RollingAuditOptions<H, K extends KernelObject, S> {
  readonly backend: Backend<H, K, S>;
  readonly ledger: Ledger<K>;
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** After a failure it waits so long, in ms. */
  readonly retryMs: number;
}

/** Looking takes this share of a core at most. A host has two families, each with its own audit. */
const SHARE = 0.001;
/** A slice should take so much CPU time, in ms: changes wait meanwhile. */
const SLICE_MS = 5;
/** Between two slices at least, in ms. */
const REST_MIN_MS = 1_000;
const SLICE_MIN = 16;
const SLICE_MAX = 4_096;
/** How much larger a slice may be than the one before. */
const GROWTH = 2;

/**
 * Looks up what the host holds of the ledger's objects, some at a time and round and round, where the backend can do that cheaply.
 *
 * Shape: a slice is as large as it takes a few milliseconds, and is followed by a rest of 1,000 times the CPU time that it took. So the share of a
 * core is bounded whatever there is; how long a round takes is not: a second and more, however busy the machine is.
 * Edges: what the ledger doesn't know, such as an object that somebody added, is not looked for.
 */
export class RollingAudit<H, K extends KernelObject, S> {
  readonly #options: RollingAuditOptions<H, K, S>;
  #dueMs: number;
  #size = SLICE_MIN;

  constructor(options: RollingAuditOptions<H, K, S>) {
    const { backend, clock } = options;
    this.#options = options;
    this.#dueMs = backend.looksUpCheaply === true && backend.lookup !== undefined ? clock.nowMs() : Number.POSITIVE_INFINITY;
  }

  /** When the next slice is due, ms since the epoch; infinite: never. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** Look at the next slice; gives what is left of the objects that aren't as the ledger has them. */
  async lookAtSlice(signal: AbortSignal): Promise<ReadonlyMap<string, WhatIsLeft>> {
    const { backend, ledger, family, clock, log, retryMs } = this.#options;
    const sinceMs = workMs(clock);
    const slice = ledger.nextApplied(this.#size);
    try {
      const found = slice.length === 0 ? new Map<string, K>() : await backend.lookup?.(slice, signal);
      const tookMs = workMs(clock) - sinceMs;
      this.#dueMs = clock.nowMs() + Math.max(REST_MIN_MS, tookMs / SHARE);
      if (slice.length === this.#size) {
        const fitting = tookMs === 0 ? SLICE_MAX : (slice.length * SLICE_MS) / tookMs;
        this.#size = Math.round(Math.min(SLICE_MAX, this.#size * GROWTH, Math.max(SLICE_MIN, fitting)));
      }
      return new Map(slice.flatMap((object) => difference(object, found?.get(objectId(object)))));
    } catch (error) {
      const cause = operatingError(error);
      if (cause === undefined) throw error;
      if (!signal.aborted) log.debug("a part of the host can't be looked at", { family, error: cause.message });
      this.#dueMs = clock.nowMs() + retryMs;
      return new Map();
    }
  }
}

function difference<K extends KernelObject>(wanted: K, found: K | undefined): readonly (readonly [id: string, left: WhatIsLeft])[] {
  return isEqual(wanted.value, found?.value) ? [] : [[objectId(wanted), () => found]];
}
