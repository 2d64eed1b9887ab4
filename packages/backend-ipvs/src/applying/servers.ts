import { hostPort, objectId } from "@turnout/core/backend";
import type { Clock, IPFamily, ProxyError } from "@turnout/core/backend";
import type { Ipvs } from "@turnout/host/ipvs";
import type { IpvsOperation } from "@turnout/host/ipvs/model";
import { readKey } from "../objects.ts";
import type { IpvsObject, ServerObject } from "../objects.ts";
import { virtualOf } from "../plan.ts";
import type { ServerRemoval } from "../plan.ts";
import { realServerOf, virtualServerOf } from "../servers.ts";
import { memberOf } from "../sets.ts";
import type { Results } from "./results.ts";

/** How often the connections of a real server that drains are counted. */
const DRAIN_POLL_MS = 5_000;

/** An object, and what brings it into force or takes it away. */
export type Change = readonly [IpvsObject, IpvsOperation];

/** The same change, by why it was refused: the kernel has what it didn't seem to have, or the reverse. */
const OTHERWISE: Partial<Record<IpvsOperation["verb"], readonly [code: ProxyError["code"], verb: IpvsOperation["verb"]]>> = {
  "add-service": ["already_exists", "edit-service"],
  "edit-service": ["not_found", "add-service"],
  "add-server": ["already_exists", "edit-server"],
  "edit-server": ["not_found", "add-server"],
};

/** What somebody else made gets the values that are wanted, and a real server that went with its virtual server is made again. Undefined: that is not why. */
function otherwise(operation: IpvsOperation, error: ProxyError | undefined): IpvsOperation | undefined {
  const [code, verb] = OTHERWISE[operation.verb] ?? [];
  return error === undefined || error.code !== code ? undefined : ({ ...operation, verb } as IpvsOperation);
}

/** What a {@link ServerWriter} works with. */
export interface ServerTools {
  readonly ipvs: Ipvs;
  readonly clock: Clock;
  readonly family: IPFamily;
  /** How long a real server keeps its connections, in ms. */
  readonly drainMs: number;
}

/** The removal of a real server. */
export function deletion(object: ServerObject, family: IPFamily): Change {
  return [object, { verb: "delete-server", service: virtualServerOf(object.key, family), server: realServerOf(object) }];
}

/** Changes one family's virtual and real servers; what the kernel refuses fails by itself. */
export class ServerWriter {
  readonly #ipvs: Ipvs;
  readonly #clock: Clock;
  readonly #family: IPFamily;
  readonly #drainMs: number;
  /** Keys of virtual servers that the kernel refused, so their real servers can't be added. */
  readonly #refused = new Set<string>();

  constructor({ ipvs, clock, family, drainMs }: ServerTools) {
    this.#ipvs = ipvs;
    this.#clock = clock;
    this.#family = family;
    this.#drainMs = drainMs;
  }

  /**
   * Carry operations out, each by itself. What is to go and is gone already is no failure.
   * @throws {ProxyError} `not_found` where virtual servers that we made are gone: another program removes them, so everything has to be compared.
   */
  async change(changes: readonly Change[], results: Results, signal: AbortSignal): Promise<void> {
    const outcomes = await this.#operate(changes, signal);
    const again = changes.flatMap(([object, operation], index): readonly Change[] => {
      const other = otherwise(operation, outcomes[index]);
      return other === undefined ? [] : [[object, other]];
    });
    const secondly = new Map(again.map(([object]) => object).map((object, index) => [object, index]));
    const second = again.length === 0 ? [] : await this.#operate(again, signal);
    for (const [index, [object, operation]] of changes.entries()) {
      const at = secondly.get(object);
      const error = at === undefined ? outcomes[index] : second[at];
      const isGone = operation.verb.startsWith("delete") && error?.code === "not_found";
      if (!isGone) results.note(object, error);
      if (operation.verb === "add-service" && error !== undefined) results.absent.add(memberOf(object.key));
      if (object.kind === "service") {
        if (error === undefined || isGone) this.#refused.delete(object.key);
        else this.#refused.add(object.key);
        // It was made again, but its real servers went with it.
        if (operation.verb === "edit-service" && outcomes[index]?.code === "not_found") throw outcomes[index];
      } else if (object.kind === "server" && error?.code === "not_found" && !isGone && !this.#refused.has(virtualOf(object))) throw error;
    }
  }

  async #operate(changes: readonly Change[], signal: AbortSignal): Promise<readonly (ProxyError | undefined)[]> {
    return await this.#ipvs.change(
      changes.map(([, operation]) => operation),
      signal,
    );
  }

  /**
   * Let go of real servers: at once where they have no connections, where the protocol has none, or where their time is up; others take no
   * more, and are looked at again.
   */
  async drain(removals: readonly ServerRemoval[], results: Results, signal: AbortSignal): Promise<void> {
    const nowMs = this.#clock.nowMs();
    const candidates = removals
      .filter(({ object, sinceMs }) => readKey(object.key).protocol === "TCP" && nowMs - sinceMs < this.#drainMs)
      .map(({ object }) => object);
    // First they take no more: a connection between the count and the removal would be lost.
    const fresh = candidates.filter(({ value }) => value !== 0);
    const outcomes = await this.#operate(
      fresh.map((object) => this.#weightless(object)),
      signal,
    );
    // What is gone already is gone.
    for (const [index, object] of fresh.entries()) if (outcomes[index]?.code !== "not_found") results.note(object, outcomes[index]);
    const busy = await this.#busy(candidates);
    const going = removals.map(({ object }) => object).filter((object) => !results.failed.has(objectId(object)));
    await this.change(
      going.filter(({ key }) => !busy.has(key)).map((object) => deletion(object, this.#family)),
      results,
      signal,
    );
    for (const object of going)
      if (busy.has(object.key)) results.lingering.push({ object: { ...object, value: 0 }, afterMs: DRAIN_POLL_MS });
  }

  #weightless(object: ServerObject): Change {
    const service = virtualServerOf(object.key, this.#family);
    return [object, { verb: "edit-server", service, server: { ...realServerOf(object), weight: 0 } }];
  }

  /** The keys of real servers that have connections. */
  async #busy(servers: readonly ServerObject[]): Promise<ReadonlySet<string>> {
    const virtual = [...new Set(servers.map(virtualOf))];
    const found = await this.#ipvs.realServers(virtual.map((key) => virtualServerOf(key, this.#family)));
    const busy = new Set<string>();
    for (const [index, realServers] of found.entries()) {
      for (const { address, port, activeConnections, inactiveConnections } of realServers)
        if (activeConnections + inactiveConnections > 0) busy.add(`${virtual[index] ?? ""} ${hostPort(address, port)}`);
    }
    return busy;
  }
}
