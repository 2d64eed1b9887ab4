import type { Clock } from "@turnout/core";
import { TimeBudget } from "../../process/time-budget.ts";

/** What the requests of one queue may take of the time of this process, which its syncs need as well. */
const SHARE = 0.1;
const CREDIT_MAX_MS = 100;
/** One large answer keeps the next one waiting for no longer. */
const WAIT_MAX_MS = 1_000;
/** What a request costs at least, with its connection. */
const REQUEST_MS = 0.1;

/**
 * Answers requests within a share of the time, in turn by the clients' addresses: a client that asks a lot waits, and others don't wait for it.
 *
 * Edges: what an answer costs is measured until it is made or begins to wait for something.
 */
export class RequestQueue {
  readonly #clock: Clock;
  readonly #budget: TimeBudget;
  /** By client; the first is next. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isDraining = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#budget = new TimeBudget({ share: SHARE, creditMaxMs: CREDIT_MAX_MS, waitMaxMs: WAIT_MAX_MS }, clock);
  }

  /** Answer a client's request when its turn comes. */
  add(client: string, answer: () => void): void {
    if (this.#waiting.size === 0 && this.#budget.waitMs === 0) return this.#run(answer);
    const ofClient = this.#waiting.get(client);
    if (ofClient === undefined) this.#waiting.set(client, [answer]);
    else ofClient.push(answer);
    if (!this.#isDraining) void this.#drain();
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    while (this.#waiting.size > 0) {
      await this.#clock.sleep(Math.max(1, this.#budget.waitMs), NEVER);
      for (const [client, answers] of this.#waiting) {
        if (this.#budget.waitMs > 0) break;
        const [answer, ...left] = answers;
        this.#waiting.delete(client);
        if (left.length > 0) this.#waiting.set(client, left);
        if (answer !== undefined) this.#run(answer);
      }
    }
    this.#isDraining = false;
  }

  #run(answer: () => void): void {
    const startMs = this.#clock.nowMs();
    answer();
    this.#budget.spend(Math.max(REQUEST_MS, this.#clock.nowMs() - startMs));
  }
}

const NEVER = new AbortController().signal;
