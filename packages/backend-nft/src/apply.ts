import { ProxyError } from "@turnout/core";
import type { Clock, Lingering, Log, Outcome, Plan } from "@turnout/core";
import type { NftSession } from "./nft-session.ts";
import type { NftObject } from "./objects.ts";
import { LINGER_MS } from "./plan.ts";
import type { ChainDeletion, Transaction } from "./plan.ts";

/** A little more than the wait itself, so that one look is enough. */
const REVISIT_MS = LINGER_MS + 100;

/**
 * Carries plans out and remembers which chains still have to be deleted.
 *
 * Edges: a chain that can't be deleted yet is tried again a second later and never fails a sync.
 */
export class Applier {
  readonly #session: NftSession;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #lingering = new Map<string, Lingering<NftObject>>();

  constructor(session: NftSession, clock: Clock, log: Log) {
    this.#session = session;
    this.#clock = clock;
    this.#log = log;
  }

  /** Carry out one plan. @throws {ProxyError} when a transaction failed; earlier ones of the plan are in force. */
  async apply({ steps, after = [] }: Plan<Transaction>, signal: AbortSignal): Promise<Outcome<NftObject>> {
    for (const { statements, made, emptied } of steps) {
      await this.#session.commit(statements, signal);
      for (const name of made) this.#lingering.delete(name);
      const sinceMs = this.#clock.nowMs();
      for (const object of emptied) this.#lingering.set(object.key, { object, sinceMs });
    }
    for (const { deleted } of after) await this.#deleteChains(deleted, signal);
    return this.#lingering.size === 0 ? {} : { lingering: [...this.#lingering.values()], revisitAfterMs: REVISIT_MS };
  }

  /** Forget what lingers: the host was read anew, and idle chains are among what was found. */
  reset(): void {
    this.#lingering.clear();
  }

  /** Delete idle chains at once, or one by one where that fails: one that somebody else has deleted must not hold up the rest. */
  async #deleteChains(chains: readonly ChainDeletion[], signal: AbortSignal): Promise<void> {
    try {
      await this.#session.commit(
        chains.map(({ statement }) => statement),
        signal,
      );
      for (const { name } of chains) this.#lingering.delete(name);
    } catch (cause) {
      if (signal.aborted) throw cause;
      const [first] = chains;
      if (first === undefined) return;
      if (chains.length > 1) {
        for (const chain of chains) await this.#deleteChains([chain], signal);
        return;
      }
      const error = ProxyError.from(cause, "tool_failed", "nft failed");
      const entry = this.#lingering.get(first.name);
      if (entry === undefined || error.code === "not_found") this.#lingering.delete(first.name);
      else this.#lingering.set(first.name, { ...entry, sinceMs: this.#clock.nowMs() });
      this.#log.debug("an idle chain can't be deleted yet", { chain: first.name, error: error.message });
    }
  }
}
