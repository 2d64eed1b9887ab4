import { ProxyError } from "@turnout/core";
import type { Clock, Lingering, Log, Outcome, Plan } from "@turnout/core";
import type { NftSession } from "./nft-session.ts";
import type { NftObject } from "./objects.ts";
import { LINGER_MS } from "./plan.ts";
import type { Transaction } from "./plan.ts";

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
  #lingering: readonly Lingering<NftObject>[] = [];

  constructor(session: NftSession, clock: Clock, log: Log) {
    this.#session = session;
    this.#clock = clock;
    this.#log = log;
  }

  /** Carry out one plan. @throws {ProxyError} when a transaction failed; earlier ones of the plan are in force. */
  async apply({ steps, after = [] }: Plan<Transaction>, signal: AbortSignal): Promise<Outcome<NftObject>> {
    const made = new Set<string>();
    for (const { statements, emptied } of steps) {
      await this.#session.commit(statements, signal);
      for (const statement of statements) if (statement.startsWith("add chain ")) made.add(statement.split(" ")[4] ?? "");
      const sinceMs = this.#clock.nowMs();
      this.#lingering = [
        ...this.#lingering.filter(({ object }) => !made.has(object.key)),
        ...emptied.map((object) => ({ object, sinceMs })),
      ];
    }
    for (const transaction of after) await this.#deleteChains(transaction, signal);
    return this.#lingering.length === 0 ? {} : { lingering: this.#lingering, revisitAfterMs: REVISIT_MS };
  }

  async #deleteChains({ statements }: Transaction, signal: AbortSignal): Promise<void> {
    const names = new Set(statements.map((statement) => statement.split(" ")[4]));
    try {
      await this.#session.commit(statements, signal);
      this.#lingering = this.#lingering.filter(({ object }) => !names.has(object.key));
    } catch (error) {
      if (signal.aborted) throw error;
      this.#log.debug("idle chains can't be deleted yet", { error: ProxyError.from(error, "tool_failed", "nft").message });
      const sinceMs = this.#clock.nowMs();
      this.#lingering = this.#lingering.map((entry) => (names.has(entry.object.key) ? { ...entry, sinceMs } : entry));
    }
  }
}
