import { tryInHalves } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import type { Log, Outcome, Plan } from "@turnout/core/backend";
import type { NftSession } from "@turnout/host/nft";
import type { ChainObject, NftObject } from "./objects.ts";
import type { ChainDeletion, Transaction } from "./plan.ts";

/** Chains lie idle this long before they are deleted: kernels before 6.2 notice late that nothing refers to them. */
const IDLE_MS = 1_000;

/**
 * Carries plans out.
 *
 * Edges: a chain that can't be deleted yet is tried again a second later and never fails a sync.
 */
export class Applier {
  readonly #session: NftSession;
  readonly #log: Log;
  #cleanupFailures = 0;

  constructor(session: NftSession, { log }: { readonly log: Log }) {
    this.#session = session;
    this.#log = log;
  }

  /** How often an idle chain could not be deleted, and was kept for another try. */
  get cleanupFailures(): number {
    return this.#cleanupFailures;
  }

  /** Carry out one plan. @throws {ProxyError} when a transaction failed; earlier ones of the plan are in force. */
  async apply({ steps }: Plan<Transaction>, signal: AbortSignal): Promise<Outcome<NftObject>> {
    const idle: ChainObject[] = [];
    let before: Promise<void> = Promise.resolve();
    for (const { statements, emptied, deleted } of steps) {
      // While the one before is under way.
      const commit = deleted.length > 0 || statements.length === 0 ? undefined : this.#session.prepare(statements);
      await before;
      before = commit?.(signal) ?? before;
      if (commit === undefined || emptied.length > 0) await before;
      if (deleted.length > 0) idle.push(...(await this.#deleteChains(deleted, signal)));
      idle.push(...emptied);
    }
    await before;
    return idle.length === 0 ? {} : { lingering: idle.map((object) => ({ object, afterMs: IDLE_MS })) };
  }

  /** Delete idle chains, all at once where that can be done; resolves to those that something still uses. What somebody else has deleted is gone. */
  async #deleteChains(chains: readonly ChainDeletion[], signal: AbortSignal): Promise<readonly ChainObject[]> {
    const refused = await tryInHalves(chains, {
      attempt: (some) =>
        this.#session.commit(
          some.map(({ statement }) => statement),
          signal,
        ),
      onFailure(cause) {
        if (signal.aborted) throw cause;
      },
    });
    return [...refused].flatMap(([{ chain }, cause]) => {
      const error = ProxyError.from(cause, "tool_failed", "nft failed");
      this.#log.debug("an idle chain can't be deleted yet", { chain: chain.key, error: error.message });
      if (error.code === "not_found") return [];
      this.#cleanupFailures += 1;
      return [chain];
    });
  }
}
