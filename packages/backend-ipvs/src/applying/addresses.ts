import { tryInHalves } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import type { OwnAddresses } from "@turnout/host";
import { setName } from "../names.ts";
import type { AddressObject } from "../objects.ts";
import { entryId } from "../sets.ts";
import type { Results } from "./results.ts";

/** What isn't about single addresses. */
const CONCERNS_ALL: ReadonlySet<string> = new Set(["host_unsupported", "tool_missing", "permission_denied"]);

/** Puts one family's service addresses on the device, and takes them off; what the host refuses fails by itself. */
export class AddressWriter {
  readonly #own: OwnAddresses;
  readonly #family: IPFamily;

  constructor(own: OwnAddresses, family: IPFamily) {
    this.#own = own;
    this.#family = family;
  }

  /** Bind addresses; not one at which nothing would keep the host's own ports from answering. */
  async bind(objects: readonly AddressObject[], results: Results, signal: AbortSignal): Promise<void> {
    const guarded = objects.filter((object) => {
      const isGuarded = !results.failed.has(entryId(setName("KUBE-IPVS-IPS", this.#family), object.key));
      if (!isGuarded) results.note(object, new ProxyError("tool_failed", "its place in KUBE-IPVS-IPS was refused", { object: object.key }));
      return isGuarded;
    });
    for (const [object, error] of await this.#eachAddress(guarded, (ips) => this.#own.add(ips, signal))) results.note(object, error);
  }

  async unbind(objects: readonly AddressObject[], results: Results, signal: AbortSignal): Promise<void> {
    const refused = await this.#eachAddress(objects, (ips) => this.#own.remove(ips, signal));
    if (refused.size === 0) return;
    // What is gone already is gone.
    const left = new Set(await this.#own.list());
    for (const [object, error] of refused) if (left.has(object.key)) results.note(object, error);
  }

  /** All at once, and one by one where that fails. A single one is tried twice: what failed for a moment is no reason to go without it. */
  async #eachAddress(
    objects: readonly AddressObject[],
    work: (ips: readonly string[]) => Promise<void>,
  ): Promise<ReadonlyMap<AddressObject, ProxyError>> {
    const refused = await tryInHalves(objects, {
      async attempt(some) {
        const ips = some.map(({ key }) => key);
        await work(ips).catch((error: unknown) => (some.length === 1 && ProxyError.is(error) ? work(ips) : Promise.reject(error as Error)));
      },
      onFailure(error) {
        if (!ProxyError.is(error)) throw error;
        return !CONCERNS_ALL.has(error.code);
      },
    });
    return new Map(
      Array.from(refused, ([object, error]) => [
        object,
        ProxyError.from(error, "tool_failed", "an address can't be changed", { object: object.key }),
      ]),
    );
  }
}
