import { objectId, ProxyError } from "@turnout/core/backend";
import type { Clock } from "@turnout/core/backend";
import type { EbpfObject } from "./objects.ts";

/** How long a family waits for the first one's programs, and how often it looks, in ms. */
const SERVE_WAIT_MS = 30_000;
const POLL_MS = 20;

/**
 * Whether programs of ours serve this node. The first family brings them to their hooks and devices; what the other family writes is in force only then,
 * and a former proxy's rules of that family go as soon as it is.
 *
 * Shape: the node is served once all are there that were wanted, the table of nft among them. From then on what fails does so by itself.
 */
export class Serving {
  #hasServed = false;
  readonly #refused = new Map<string, ProxyError>();

  /** The first family has looked at the host: what isn't there is tried again with its next plan. */
  found(objects: Iterable<EbpfObject>): void {
    this.#refused.clear();
    for (const { kind } of objects) this.#hasServed ||= kind === "serving";
  }

  /**
   * These programs, or the table, were to be brought to their places; some could not be.
   *
   * Edges: a device that is gone meanwhile carries nothing, and so nothing is missing.
   */
  tried<T extends EbpfObject>(objects: readonly T[], failed: ReadonlyMap<T, ProxyError>): void {
    for (const object of objects) {
      const error = failed.get(object);
      if (error === undefined || (object.kind === "device" && error.code === "not_found")) this.#refused.delete(objectId(object));
      else this.#refused.set(objectId(object), error);
    }
  }

  /** The first family has carried out all that it takes. @throws {ProxyError} `timed_out` when something is missing and nothing has served before. */
  begin(): void {
    const [first] = this.#refused;
    if (!this.#hasServed && first !== undefined) {
      const [id, cause] = first;
      const others = this.#refused.size - 1;
      throw new ProxyError("timed_out", "this node is not served yet, a former proxy's rules stay", {
        object: `${others === 0 ? id : `${id} and ${others} more`}: ${cause.message}`,
        cause,
      });
    }
    this.#hasServed = true;
  }

  /** @throws {ProxyError} `timed_out` when the node isn't served in time, `canceled`. */
  async demand(clock: Pick<Clock, "nowMs" | "sleep">, signal: AbortSignal): Promise<void> {
    const untilMs = clock.nowMs() + SERVE_WAIT_MS;
    while (!this.#hasServed) {
      if (clock.nowMs() >= untilMs)
        throw new ProxyError("timed_out", "the programs are not at their hooks yet", { hint: "the log of the other family says why" });
      await clock.sleep(POLL_MS, signal);
      if (signal.aborted) throw new ProxyError("canceled", "a plan was stopped", { cause: signal.reason });
    }
  }
}
