import { API_SERVERS } from "../policy/ground.ts";
import type { Store, StoreChange } from "./store.ts";

/** Services, and times of one Service, that are remembered between two looks. */
const TRIGGERS_MAX = 10_000;

/** When the endpoint changes not yet told were triggered (ms since the epoch), by Service. Bounded. */
class TriggerTimes {
  #times = new Map<string, number[]>();

  /** Note a trigger; past the bound it is let go, it is only a sample of latency. */
  note(serviceKey: string, triggeredMs: number): void {
    const times = this.#times.get(serviceKey);
    if (times !== undefined && times.length < TRIGGERS_MAX) times.push(triggeredMs);
    else if (times === undefined && this.#times.size < TRIGGERS_MAX) this.#times.set(serviceKey, [triggeredMs]);
  }

  /** What was noted; begins anew. */
  drain(): ReadonlyMap<string, readonly number[]> {
    const times = this.#times;
    if (times.size > 0) this.#times = new Map<string, number[]>();
    return times;
  }
}

/** What news of a store are gathered for. */
export interface StoreNewsOptions {
  /** Tell whether anything hangs on a node of this name. */
  readonly isFollowed: (nodeName: string) => boolean;
  /** Hears, synchronously, of each change that anything may hang on; must not throw. */
  readonly onNews: () => void;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * What changed in a store since somebody last looked, by name: a thousand changes of one Service are one.
 *
 * Shape: each `consume…` gives what is new and begins anew. At first everything is.
 */
export class StoreNews {
  readonly #options: StoreNewsOptions;
  readonly #stopHearing: () => void;
  readonly #triggers = new TriggerTimes();
  #services: Set<string>;
  #nodes = new Set<string>();
  #areRangesNew = true;
  #isGroundNew = true;

  constructor(store: Store, options: StoreNewsOptions) {
    this.#options = options;
    this.#services = new Set(store.serviceKeys());
    this.#stopHearing = store.onChange((change) => this.#hear(change));
  }

  /** Nothing is new. */
  get isEmpty(): boolean {
    return this.#services.size === 0 && this.#nodes.size === 0 && !this.#areRangesNew && !this.#isGroundNew;
  }

  /** Services that changed, or whose endpoints did, by `namespace/name`. */
  consumeServices(): ReadonlySet<string> {
    const services = this.#services;
    if (services.size === 0) return NONE;
    this.#services = new Set();
    return services;
  }

  /** When the endpoint changes of Services were triggered, ms since the epoch. */
  consumeTriggers(): ReadonlyMap<string, readonly number[]> {
    return this.#triggers.drain();
  }

  /** Followed nodes of which something else may be known now; "all" when the service ranges are others. */
  consumeNodes(): ReadonlySet<string> | "all" {
    const nodes = this.#areRangesNew ? "all" : this.#nodes;
    this.#areRangesNew = false;
    if (this.#nodes.size > 0) this.#nodes = new Set();
    return nodes;
  }

  /** Tell whether service ranges, or addresses of nodes, their pods or the source, are others: what no Service can claim by its age. */
  consumeGround(): boolean {
    const isNew = this.#isGroundNew;
    this.#isGroundNew = false;
    return isNew;
  }

  /** Stop following the store. */
  close(): void {
    this.#stopHearing();
  }

  #hear(change: StoreChange): void {
    if (change.kind === "service") {
      this.#services.add(change.key);
      if (change.key === API_SERVERS) this.#isGroundNew = true;
      if (change.triggeredMs !== undefined) this.#triggers.note(change.key, change.triggeredMs);
    } else if (change.kind === "node") {
      if (!this.#options.isFollowed(change.key)) return;
      this.#nodes.add(change.key);
    } else if (change.kind === "nodeAddresses") {
      this.#isGroundNew = true;
    } else if (change.kind === "serviceCIDRs") {
      this.#areRangesNew = true;
      this.#isGroundNew = true;
    }
    this.#options.onNews();
  }
}
