import { ProxyError, type Clock, type Drift, type HostEvent, type IPFamily, type Log } from "@turnout/core";

/** What a host is watched with. */
export interface HostWatchOptions<H> {
  readonly family: IPFamily;
  /** The backend's way to watch; it may end or fail at any time. */
  readonly watch: (signal: AbortSignal) => AsyncIterable<HostEvent<H>>;
  readonly onFacts: (facts: H) => void;
  /** Hears what somebody may have changed that is ours. */
  readonly onDrift: (drift: Drift) => void;
  /** Compares everything: something may have changed while nobody watched. */
  readonly audit: () => void;
  /** Wait before watching again, in ms. */
  readonly retryMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Watch a host until aborted; watching that ends or fails is begun again. Rejects with defects alone. */
export async function watchHost<H>(options: HostWatchOptions<H>, signal: AbortSignal): Promise<void> {
  const { family, watch, onFacts, onDrift, audit, retryMs, clock, log } = options;
  while (!signal.aborted) {
    try {
      for await (const event of watch(signal)) {
        if (event.kind === "facts") onFacts(event.facts);
        else onDrift(event);
      }
      if (signal.aborted) return;
      log.warn("watching the host ended, starting again", { family });
    } catch (error) {
      if (signal.aborted) return;
      // Anything but an operating error is a defect, and ends the process.
      if (!ProxyError.is(error)) throw error;
      log.warn("the host can't be watched, trying again", { family, error });
    }
    await clock.sleep(retryMs, signal);
    if (!signal.aborted) audit();
  }
}
