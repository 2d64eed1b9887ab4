import { tryInHalves } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import type { Log, Outcome, Plan } from "@turnout/core/backend";
import type { Netlink, NftElement } from "@turnout/host";
import type { NftSession } from "@turnout/host/nft";
import { TABLE } from "./names.ts";
import { keyParts } from "./objects.ts";
import type { ChainObject, NftObject } from "./objects.ts";
import { rememberedEndpoint } from "./observe.ts";
import type { ChainDeletion, Transaction } from "./plan.ts";

/** Chains lie idle this long before they are deleted: kernels before 6.2 notice late that nothing refers to them. */
const IDLE_MS = 1_000;
/** Affinity entries deleted in one transaction. */
const FORGOTTEN_AT_ONCE = 1_000;

/**
 * Carries plans out.
 *
 * Edges: a chain that can't be deleted yet is tried again a second later and never fails a sync.
 */
export class Applier {
  readonly #session: NftSession;
  readonly #netlink: Pick<Netlink, "nftTable">;
  readonly #family: "ip" | "ip6";
  readonly #log: Log;
  #cleanupFailures = 0;

  constructor(
    session: NftSession,
    family: "ip" | "ip6",
    { netlink, log }: { readonly netlink: Pick<Netlink, "nftTable">; readonly log: Log },
  ) {
    this.#session = session;
    this.#netlink = netlink;
    this.#family = family;
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
    for (const { statements, forgets, emptied, deleted } of steps) {
      // While the one before is under way.
      const commit = deleted.length > 0 || statements.length === 0 ? undefined : this.#session.prepare(statements);
      await before;
      before = commit?.(signal) ?? before;
      if (commit === undefined || forgets.length + emptied.length > 0) await before;
      if (deleted.length > 0) idle.push(...(await this.#deleteChains(deleted, signal)));
      if (forgets.length > 0) await this.#forgetClients(new Set(forgets), signal);
      idle.push(...emptied);
    }
    await before;
    return idle.length === 0 ? {} : { lingering: idle.map((object) => ({ object, afterMs: IDLE_MS })) };
  }

  /**
   * Delete the affinity entries of endpoints that are gone, so that those which come back begin anew. Lists the whole set (packets made
   * its elements, nobody else knows them), which happens only when an endpoint of an affinity row goes.
   */
  async #forgetClients(endpoints: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const read = await this.#netlink.nftTable(this.#family, TABLE, () => {
      const keys: string[] = [];
      const keep = ({ key }: NftElement): void => void (endpoints.has(rememberedEndpoint(key)) && keys.push(key));
      return { keys, set: (name: string) => (name === "affinity" ? keep : undefined) };
    });
    const keys = read?.keys ?? [];
    for (let from = 0; from < keys.length; from += FORGOTTEN_AT_ONCE) {
      const elements = keys.slice(from, from + FORGOTTEN_AT_ONCE).map((key) => ({ key, value: "", comment: "" }));
      const all = { family: this.#family, table: TABLE, set: "affinity", parts: keyParts("affinity"), elements };
      // Added first, because one that has just timed out can't be deleted.
      await this.#session.commit(
        [
          { verb: "add", ...all },
          { verb: "delete", ...all },
        ],
        signal,
      );
    }
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
