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
 * Edges: what arrives while a batch runs is merged into the next; a failure is logged, never fails a sync, and what it
 * left is tried again after the next one.
 */
export class FlowForgetter {
  readonly #options: FlowForgetterOptions;
  readonly #stop = new AbortController();
  /** By destination, and apart from them those that only concern some answerers. */
  readonly #waiting = new Map<string, FlowFilter>();
  #running: Promise<void> | undefined;

  constructor(options: FlowForgetterOptions) {
    this.#options = options;
  }

  /** Have these forgotten soon, and what could not be before; returns at once. */
  forget(flows: readonly FlowFilter[]): void {
    if (this.#options.backend.forgetFlows === undefined) return;
    for (const flow of flows) this.#add(flow);
    if (this.#waiting.size > 0) this.#running ??= this.#run();
  }

  /** Resolve when nothing is left to forget. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** Merge one more into what waits: a later word on a whole destination takes the place of all earlier ones. */
  #add(flow: FlowFilter): void {
    const destination = `${flow.address} ${flow.port}`;
    const part = `${destination} only`;
    if (flow.only === undefined) {
      this.#waiting.delete(part);
      this.#waiting.set(destination, flow);
    } else {
      const before = this.#waiting.get(part)?.only ?? [];
      this.#waiting.set(part, { ...flow, only: [...new Set([...before, ...flow.only])] });
    }
  }

  async #run(): Promise<void> {
    const { backend, clock, family, log, observer } = this.#options;
    while (this.#waiting.size > 0) {
      const flows = [...this.#waiting.values()];
      this.#waiting.clear();
      const startMs = clock.nowMs();
      try {
        const count = (await backend.forgetFlows?.(flows, this.#stop.signal)) ?? 0;
        observer.flowsForgotten({ family, count, durationMs: clock.nowMs() - startMs });
      } catch (error) {
        log.warn("stale connections could not be forgotten", { family, error: ProxyError.from(error, "tool_failed", "conntrack").message });
        const later = [...this.#waiting.values()];
        this.#waiting.clear();
        for (const flow of [...flows, ...later]) this.#add(flow);
        break;
      }
    }
    this.#running = undefined;
  }
}
