import {
  Backoff,
  ProxyError,
  type Backend,
  type Clock,
  type IPFamily,
  type KernelObject,
  type LeftObjects,
  type Log,
  type SyncLoop,
  type SyncObserver,
  type HostEvent,
} from "@turnout/core";
import type { RunConfig } from "../config/run-config.ts";
import { externalChangeEvent, type ProxyEvent } from "../events/proxy-events.ts";
import type { ExternalChange } from "../insight/proxy-view.ts";
import { RepairPacer } from "../repair/repair-pacer.ts";

/** What a family's host is followed with. */
export interface HostRepairOptions<H, K extends KernelObject, S> {
  readonly family: IPFamily;
  readonly backend: Backend<H, K, S>;
  readonly loop: () => SyncLoop<H, K, S>;
  readonly config: Pick<RunConfig, "syncPeriodMs" | "repairsOnNotice">;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when host facts have changed. */
  readonly onNewFacts: () => void;
  readonly onEvent?: ((event: ProxyEvent) => void) | undefined;
}

/** Follows what the backend reports of its host: changed facts go to the sync loop, changes of other programs are repaired. */
export class HostRepair<H, K extends KernelObject, S> {
  readonly #options: HostRepairOptions<H, K, S>;
  #pacer: RepairPacer | undefined;
  #last: ExternalChange | undefined;

  constructor(options: HostRepairOptions<H, K, S>) {
    this.#options = options;
  }

  /** The last change of another program; undefined: none was seen. */
  get last(): ExternalChange | undefined {
    return this.#last;
  }

  /** A sync ended. */
  synced(event: Parameters<NonNullable<SyncObserver["synced"]>>[0]): void {
    this.#pacer?.synced(event);
  }

  /** Follow the host until aborted; watching that ends or fails is begun again, soon at first. Rejects with defects alone. */
  async run(signal: AbortSignal): Promise<void> {
    const { backend, family, clock, log, config, loop } = this.#options;
    const { syncPeriodMs } = config;
    const audit = (): void => loop().audit();
    const onChange = (who: string, objects: number, some: readonly string[]): void => {
      this.#last = { atMs: clock.nowMs(), who, objects };
      this.#options.onEvent?.(externalChangeEvent(family, { who, objects, some }));
    };
    const fix = (left: LeftObjects): void => loop().fix(left);
    this.#pacer = new RepairPacer({ family, clock, log, audit, fix, onChange, maxWaitMs: syncPeriodMs, signal });
    if (backend.watch === undefined) return;
    const backoff = new Backoff(syncPeriodMs);
    while (!signal.aborted) {
      const sinceMs = clock.nowMs();
      try {
        for await (const event of backend.watch(signal)) this.#hear(event);
        if (signal.aborted) return;
        log.warn("watching the host ended, starting again", { family });
      } catch (error) {
        if (signal.aborted) return;
        // Anything but an operating error is a defect, and ends the process.
        if (!ProxyError.is(error)) throw error;
        log.warn("the host can't be watched, trying again", { family, error });
      }
      if (clock.nowMs() - sinceMs > syncPeriodMs) backoff.reset();
      await clock.sleep(backoff.next(), signal);
      // Something may have changed while the host was not watched.
      if (!signal.aborted) audit();
    }
  }

  #hear(event: HostEvent<H>): void {
    const { loop, config, onNewFacts } = this.#options;
    // Each watch begins with the facts as they are, which is seldom news.
    if (event.kind === "facts") {
      if (loop().setHost(event.facts)) onNewFacts();
    } else if (config.repairsOnNotice) this.#pacer?.changed(event);
  }
}
