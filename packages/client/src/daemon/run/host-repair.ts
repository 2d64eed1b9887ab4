import {
  ProxyError,
  type Backend,
  type Clock,
  type Drift,
  type IPFamily,
  type KernelObject,
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

/** What a host is watched with. */
interface HostWatchOptions<H> {
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
async function watchHost<H>(options: HostWatchOptions<H>, signal: AbortSignal): Promise<void> {
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
