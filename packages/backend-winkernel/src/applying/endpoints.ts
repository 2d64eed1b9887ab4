import { objectId } from "@turnout/core/backend";
import type { HnsClient } from "../hns/client.ts";
import { HnsError, isHnsError, reported } from "../hns/error.ts";
import type { HnsEndpoint } from "../hns/replies.ts";
import type { EndpointObject, SourceVipObject } from "../objects.ts";
import { remoteSettings, settingsOf, sourceVipSettings } from "../settings.ts";
import { missingEndpoint, SOURCE_VIP_NAME } from "../view.ts";
import type { HnsView } from "../view.ts";
import type { BalancerWriter } from "./balancers.ts";

const IN_USE = 0x803b002c;

/** What only fails together with others: nobody can tell what HNS holds then. */
export class HalfDone extends Error {
  override readonly name = "HalfDone";
}

/** Makes and removes endpoints of other hosts, and the one that has an overlay's source address; the view is told of all that was done. */
export class EndpointWriter {
  readonly #client: HnsClient;
  readonly #balancers: BalancerWriter;
  readonly #covered = new Map<string, EndpointObject | SourceVipObject>();

  constructor(client: HnsClient, balancers: BalancerWriter) {
    this.#client = client;
    this.#balancers = balancers;
  }

  /** What was wanted where an endpoint of this host does as well: it goes before (kubernetes/kubernetes#138000). */
  get covered(): ReadonlyMap<string, EndpointObject | SourceVipObject> {
    return this.#covered;
  }

  /** @throws {HnsError} what HNS refused it for. @throws {ProxyError} `not_found` for one of this host. @throws {HalfDone} where load balancers went meanwhile. */
  async put(object: EndpointObject, view: HnsView, signal: AbortSignal): Promise<void> {
    const local = view.localAt(object.key);
    const remotes = view.remotesAt(object.key);
    if (local === undefined && object.isLocal === true) throw missingEndpoint([object.key], objectId(object));
    const fitting = local ?? remotes.find((one) => isAs(one, object));
    const others = remotes.filter((one) => one !== fitting);
    const make = async (): Promise<HnsEndpoint> =>
      fitting ?? (await this.#client.createEndpoint(remoteSettings(object, view.networkId), signal));
    if (others.length > 0) await this.#replace(others, make, view, signal);
    else view.noteEndpoint(await make());
    if (local === undefined) this.#covered.delete(object.key);
    else this.#covered.set(object.key, object);
  }

  /** Put one in the place of others. Load balancers that name them go for a moment: HNS keeps what is referred to. */
  async #replace(others: readonly HnsEndpoint[], make: () => Promise<HnsEndpoint>, view: HnsView, signal: AbortSignal): Promise<void> {
    const gone = new Set(others.map(({ id }) => id));
    const users = new Map(others.flatMap(({ id }) => view.usersOf(id)).map((user) => [user.id, user]));
    try {
      await this.#balancers.removeAll([...users.values()], view, signal);
      for (const { id } of others) await this.#remove(id, view, signal);
      const endpoint = await make();
      view.noteEndpoint(endpoint);
      for (const user of users.values()) {
        const ids = new Set(user.endpointIds.map((id) => (gone.has(id) ? endpoint.id : id)));
        await this.#balancers.restore(settingsOf(user, [...ids]), view, signal);
      }
    } catch (error) {
      if (users.size === 0) throw error;
      throw new HalfDone("load balancers went with an endpoint", { cause: reported(error, "an endpoint can't be replaced", "endpoint") });
    }
  }

  /** @throws {HnsError} `inUse` while a load balancer names it. */
  async remove(object: EndpointObject, view: HnsView, signal: AbortSignal): Promise<void> {
    this.#covered.delete(object.key);
    const byId = view.endpoints.get(object.key.replace(/^id /, ""));
    for (const { id } of byId === undefined ? view.remotesAt(object.key) : [byId]) {
      const [user] = view.usersOf(id);
      if (user !== undefined) throw new HnsError(IN_USE, `load balancer ${user.id} names it`);
      await this.#remove(id, view, signal);
    }
  }

  /** An endpoint that somebody else made at this address does as well. */
  async putSourceVip(object: SourceVipObject, view: HnsView, signal: AbortSignal): Promise<void> {
    const found = view.localAt(object.key);
    if (found !== undefined && found.name !== SOURCE_VIP_NAME) return void this.#covered.set(object.key, object);
    if (found?.mac === object.value) return;
    if (found !== undefined) await this.#remove(found.id, view, signal);
    view.noteEndpoint(await this.#client.createEndpoint(sourceVipSettings(object, view.networkId), signal));
  }

  /** Remove it where it is ours. */
  async removeSourceVip({ key }: SourceVipObject, view: HnsView, signal: AbortSignal): Promise<void> {
    this.#covered.delete(key);
    const found = view.localAt(key);
    if (found?.name === SOURCE_VIP_NAME) await this.#remove(found.id, view, signal);
  }

  /** It may be gone already. */
  async #remove(id: string, view: HnsView, signal: AbortSignal): Promise<void> {
    try {
      await this.#client.removeEndpoint(id, signal);
    } catch (error) {
      if (!isHnsError(error, "notFound")) throw error;
    }
    view.forget(id);
  }
}

function isAs({ mac, provider, addresses }: HnsEndpoint, { value }: EndpointObject): boolean {
  return mac === value.mac && provider === value.provider && addresses.length === 1;
}
