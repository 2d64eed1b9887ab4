import type { Refusal, SyncObserver } from "@turnout/core";
import { refusalEvents, type ProxyEvent } from "../events/proxy-events.ts";

/** What is needed to tell of what the host refuses. */
export interface RefusedServicesOptions {
  readonly config: { readonly nodeName: string };
  readonly metrics: Pick<SyncObserver, "quarantined">;
  readonly onEvent?: ((event: ProxyEvent) => void) | undefined;
  /** All that the host refuses now. */
  readonly refusals: () => readonly Refusal[];
}

/** Counts what the host refuses, and makes an event for each Service of which it begins to refuse something. */
export class RefusedServices {
  readonly #options: RefusedServicesOptions;
  #known: ReadonlySet<string> = new Set();

  constructor(options: RefusedServicesOptions) {
    this.#options = options;
  }

  /** What the host refuses may have changed. */
  readonly note: SyncObserver["quarantined"] = (event) => {
    const { config, metrics, onEvent, refusals } = this.#options;
    metrics.quarantined(event);
    const events = refusalEvents(config.nodeName, refusals());
    for (const [service, one] of events) if (!this.#known.has(service)) onEvent?.(one);
    this.#known = new Set(events.keys());
  };
}
