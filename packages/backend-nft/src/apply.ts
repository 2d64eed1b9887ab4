import { ProxyError } from "@turnout/core";
import type { Clock, Lingering, Log, Outcome, Plan } from "@turnout/core";
import { readListing } from "@turnout/host/nft";
import type { NftSession } from "@turnout/host/nft";
import { TABLE } from "./names.ts";
import type { NftObject } from "./objects.ts";
import { affinityEntries } from "./observe.ts";
import { LINGER_MS } from "./plan.ts";
import type { ChainDeletion, Transaction } from "./plan.ts";

/** A little more than the wait itself, so that one look is enough. */
const REVISIT_MS = LINGER_MS + 100;
/** Affinity entries deleted in one transaction. */
const FORGOTTEN_AT_ONCE = 1_000;

/**
 * Carries plans out and remembers which chains still have to be deleted.
 *
 * Edges: a chain that can't be deleted yet is tried again a second later and never fails a sync.
 */
export class Applier {
  readonly #session: NftSession;
  readonly #family: "ip" | "ip6";
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #lingering = new Map<string, Lingering<NftObject>>();

  constructor(session: NftSession, family: "ip" | "ip6", clock: Clock, log: Log) {
    this.#session = session;
    this.#family = family;
    this.#clock = clock;
    this.#log = log;
  }

  /** Carry out one plan. @throws {ProxyError} when a transaction failed; earlier ones of the plan are in force. */
  async apply({ steps, after = [] }: Plan<Transaction>, signal: AbortSignal): Promise<Outcome<NftObject>> {
    for (const { statements, forgets, made, emptied } of steps) {
      if (statements.length > 0) await this.#session.commit(statements, signal);
      if (forgets.length > 0) await this.#forgetClients(new Set(forgets), signal);
      for (const name of made) this.#lingering.delete(name);
      const sinceMs = this.#clock.nowMs();
      for (const object of emptied) this.#lingering.set(object.key, { object, sinceMs });
    }
    for (const { deleted } of after) await this.#deleteChains(deleted, signal);
    return this.#lingering.size === 0 ? {} : { lingering: [...this.#lingering.values()], revisitAfterMs: REVISIT_MS };
  }

  /**
   * Delete the affinity entries of endpoints that are gone, so that those which come back begin anew. Lists the whole set (packets made
   * its elements, nobody else knows them), which happens only when an endpoint of an affinity row goes.
   */
  async #forgetClients(endpoints: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const place = `${this.#family} ${TABLE} affinity`;
    const listed = await this.#session.listSet(this.#family, TABLE, "affinity", signal);
    const keys = affinityEntries(readListing(listed).sets.get("affinity") ?? []).flatMap(({ key, endpoint }) =>
      endpoints.has(endpoint) ? [key] : [],
    );
    for (let from = 0; from < keys.length; from += FORGOTTEN_AT_ONCE) {
      const chunk = keys.slice(from, from + FORGOTTEN_AT_ONCE);
      // Added first, because one that has just timed out can't be deleted.
      const add = `add element ${place} { ${chunk.map((key) => `${key} timeout 1m`).join(", ")} }`;
      await this.#session.commit([add, `delete element ${place} { ${chunk.join(", ")} }`], signal);
    }
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
