import type { Backend, KernelObject } from "./backend.ts";
import { ProxyError } from "./errors.ts";
import type { IPFamily } from "./objects.ts";
import type { SyncObserver } from "./observer.ts";
import type { Clock, FlowFilter, Log } from "./world.ts";

/** What forgetting needs. */
export interface FlowForgetterOptions {
  readonly backend: Pick<Backend<unknown, KernelObject, unknown>, "forgetFlows">;
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: SyncObserver;
}

/**
 * Has the backend forget connections beside the syncs, one batch at a time.
 *
 * Edges: what arrives while a batch runs is merged into the next; a failure is logged and never fails a sync.
 */
export class FlowForgetter {
  readonly #options: FlowForgetterOptions;
  readonly #stop = new AbortController();
  #waiting: FlowFilter[] = [];
  #running: Promise<void> | undefined;

  constructor(options: FlowForgetterOptions) {
    this.#options = options;
  }

  /** Have these forgotten soon; returns at once. */
  forget(flows: readonly FlowFilter[]): void {
    if (this.#options.backend.forgetFlows === undefined || flows.length === 0) return;
    // A later word on one destination takes the place of an earlier one that has not been carried out.
    const said = new Set(flows.map(destinationOf));
    this.#waiting = [...this.#waiting.filter((flow) => !said.has(destinationOf(flow))), ...flows];
    this.#running ??= this.#run();
  }

  /** Resolve when nothing is left to forget. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { backend, clock, family, log, observer } = this.#options;
    while (this.#waiting.length > 0) {
      const flows = this.#waiting;
      this.#waiting = [];
      const startMs = clock.nowMs();
      try {
        const count = (await backend.forgetFlows?.(flows, this.#stop.signal)) ?? 0;
        observer.flowsForgotten({ family, count, durationMs: clock.nowMs() - startMs });
      } catch (error) {
        log.warn("stale connections could not be forgotten", { family, error: ProxyError.from(error, "tool_failed", "conntrack").message });
      }
    }
    this.#running = undefined;
  }
}

function destinationOf({ address, port }: FlowFilter): string {
  return `${address} ${port}`;
}
