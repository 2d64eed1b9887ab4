import type { Backend, Clock, Drift, IPFamily, KernelObject, Log, SyncLoop, SyncObserver } from "@turnout/core";
import type { RunConfig } from "../config/run-config.ts";
import { externalChangeEvent, type ProxyEvent } from "../events/proxy-events.ts";
import type { ExternalChange } from "../insight/proxy-view.ts";
import { RepairPacer } from "../repair/repair-pacer.ts";
import { watchHost } from "./host-watch.ts";

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
  readonly onEvent: ((event: ProxyEvent) => void) | undefined;
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

  /** Follow the host until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { backend, family, clock, log, config, loop, onEvent, onNewFacts } = this.#options;
    const audit = (): void => loop().audit();
    const onChange = (who: string, objects: number, some: readonly string[]): void => {
      this.#last = { atMs: clock.nowMs(), who, objects };
      onEvent?.(externalChangeEvent(family, { who, objects, some }));
    };
    const maxWaitMs = config.syncPeriodMs;
    const pacer = new RepairPacer({ family, clock, log, audit, fix: (left) => loop().fix(left), onChange, maxWaitMs, signal });
    this.#pacer = pacer;
    if (backend.watch === undefined) return;
    const watch = backend.watch.bind(backend);
    // Each watch begins with the facts as they are, which is seldom news.
    const onFacts = (facts: H): void => {
      if (loop().setHost(facts)) onNewFacts();
    };
    const onDrift = (drift: Drift): void => {
      if (config.repairsOnNotice) pacer.changed(drift);
    };
    await watchHost({ family, watch, onFacts, onDrift, audit, retryMs: config.syncPeriodMs, clock, log }, signal);
  }
}
