import { objectId } from "@turnout/core/backend";
import type { Log } from "@turnout/core/backend";
import type { HnsClient } from "../hns/client.ts";
import type { LoadBalancerSettings } from "../hns/documents.ts";
import { isHnsError } from "../hns/error.ts";
import type { HnsLoadBalancer } from "../hns/replies.ts";
import { hasFeature } from "../hns/version.ts";
import type { LoadBalancerObject } from "../objects.ts";
import { balancerSettings, isAsSent } from "../settings.ts";
import { missingEndpoint } from "../view.ts";
import type { HnsView } from "../view.ts";

/** Makes, changes and removes load balancers; the view is told of all that was done. */
export class BalancerWriter {
  readonly #client: HnsClient;
  readonly #log: Log;
  /** Whether HNS changes load balancers in place; undefined: nobody asked yet. */
  #canModify: boolean | undefined;

  constructor(client: HnsClient, log: Log) {
    this.#client = client;
    this.#log = log;
  }

  /**
   * Bring one into force, with those of its endpoints that HNS has.
   * @throws {HnsError} what HNS refused it for. @throws {ProxyError} `not_found` where endpoints are missing: with the others it is in force.
   */
  async put(object: LoadBalancerObject, view: HnsView, signal: AbortSignal): Promise<void> {
    const { endpoints } = object.value;
    const ids = endpoints.flatMap((address) => view.resolve(address)?.id ?? []);
    const missing = endpoints.filter((address) => view.resolve(address) === undefined);
    if (ids.length === 0) await this.removeAll(view.balancersAt(object.key), view, signal);
    else await this.#put(object.key, balancerSettings(object, ids), view, signal);
    if (missing.length > 0) throw missingEndpoint(missing, objectId(object));
  }

  /** Change it in place where that can be; otherwise for a moment there is none. */
  async #put(key: string, settings: LoadBalancerSettings, view: HnsView, signal: AbortSignal): Promise<void> {
    const [known, ...more] = view.balancersAt(key);
    await this.removeAll(more, view, signal);
    if (known !== undefined && isAsSent(known, settings)) return;
    if (known !== undefined && (await this.#isModified(known, settings, view, signal))) return;
    await this.removeAll(view.balancersAt(key), view, signal);
    view.noteBalancer(await this.#client.createLoadBalancer(settings, signal));
  }

  async #isModified({ id }: HnsLoadBalancer, settings: LoadBalancerSettings, view: HnsView, signal: AbortSignal): Promise<boolean> {
    this.#canModify ??= hasFeature(await this.#client.version(signal), "modifyLoadBalancer");
    if (!this.#canModify) return false;
    try {
      const found = await this.#client.modifyLoadBalancer(id, settings, signal);
      view.noteBalancer(found);
      if (isAsSent(found, settings)) return true;
      this.#log.warn("HNS says that it changed a load balancer, and did not: from now on they are deleted and made again", { id });
      this.#canModify = false;
      return false;
    } catch (error) {
      if (isHnsError(error, "unsupported")) this.#canModify = false;
      else if (isHnsError(error, "notFound")) view.forget(id);
      else throw error;
      return false;
    }
  }

  /** Remove some, each of which may be gone already. */
  async removeAll(balancers: readonly HnsLoadBalancer[], view: HnsView, signal: AbortSignal): Promise<void> {
    for (const { id } of balancers) {
      await this.#remove(id, signal);
      view.forget(id);
    }
  }

  /** Windows Server 2019 fails at times to delete one, and then does (kubernetes/kubernetes#113521). */
  async #remove(id: string, signal: AbortSignal): Promise<void> {
    for (const isLast of [false, true]) {
      try {
        return await this.#client.removeLoadBalancer(id, signal);
      } catch (error) {
        if (isHnsError(error, "notFound")) return;
        if (isLast || !isHnsError(error, "refused")) throw error;
      }
    }
  }

  /** Make one again that had to go for a moment. */
  async restore(settings: LoadBalancerSettings, view: HnsView, signal: AbortSignal): Promise<void> {
    view.noteBalancer(await this.#client.createLoadBalancer(settings, signal));
  }
}
