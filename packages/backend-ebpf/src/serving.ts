import { ProxyError } from "@turnout/core/backend";
import type { Clock, Outcome } from "@turnout/core/backend";
import type { EbpfObject } from "./objects.ts";

/** How long a family waits for the first one's programs, and how often it looks, in ms. */
const SERVE_WAIT_MS = 30_000;
const LOOK_MS = 20;

/** Objects by which programs are asked at all. */
const ATTACHED: readonly string[] = ["link ", "device ", "table "] satisfies readonly `${EbpfObject["kind"]} `[];

/**
 * Whether programs of ours serve this node. The first family brings them to their hooks and devices; what the other family writes is in force only then,
 * and a former proxy's rules of that family go as soon as it is.
 */
export class Serving {
  #isServed = false;

  /** The first family found these on the host. */
  found(objects: Iterable<EbpfObject>): void {
    for (const { kind } of objects) this.#isServed ||= kind === "link";
  }

  /** The first family has carried out a plan. */
  applied({ failed, deferred }: Outcome<EbpfObject>): void {
    const missing = [...(failed?.keys() ?? []), ...(deferred ?? [])];
    this.#isServed ||= !missing.some((id) => ATTACHED.some((kind) => id.startsWith(kind)));
  }

  /** @throws {ProxyError} `timed_out` when there are no programs in time, `canceled`. */
  async demand(clock: Pick<Clock, "nowMs" | "sleep">, signal: AbortSignal): Promise<void> {
    const untilMs = clock.nowMs() + SERVE_WAIT_MS;
    while (!this.#isServed) {
      if (clock.nowMs() >= untilMs)
        throw new ProxyError("timed_out", "the programs are not at their hooks yet", { hint: "the log of the other family says why" });
      await clock.sleep(LOOK_MS, signal);
      if (signal.aborted) throw new ProxyError("canceled", "a plan was stopped", { cause: signal.reason });
    }
  }
}
