import { RevisionLog } from "../model/revision-log.ts";
import type { ServiceVersion } from "./service-version.ts";

/** What is known of a Service before it changed. */
export interface ServicePast {
  /** Keys of rows it had at any time since. */
  readonly rowKeys: readonly string[];
  /** What it was; `version` is undefined when there was none, the whole when that is forgotten. */
  readonly before: { readonly version: ServiceVersion | undefined } | undefined;
  /** When its changes since were triggered. */
  readonly triggersMs: readonly number[];
}

/** Endpoints of old versions that are kept: some megabytes. */
const WEIGHT_MAX = 5_000;
/** Trigger times of one Service that are kept past a compaction. */
const TRIGGERS_MAX = 100;

/** Which Services changed since which revision, and the latest of what they were before: a {@link RevisionLog} that knows what its notes weigh. */
export class ServiceLog {
  readonly #log: RevisionLog<ServicePast>;
  /** Pasts that know what was before, oldest first, and what they weigh. */
  readonly #remembering: { readonly past: { before: ServicePast["before"] }; readonly weight: number }[] = [];
  #weight = 0;
  #answer: { readonly since: number; readonly pasts: ReadonlyMap<string, ServicePast> } | undefined;

  /** @see RevisionLog */
  constructor(floor: number, entriesMin?: number) {
    // Who asks from between two changes that were folded would be told a wrong past: better none.
    this.#log = new RevisionLog(floor, entriesMin, {
      join: joined,
      fold: (earlier, later) => ({ ...joined(earlier, later), before: undefined }),
    });
  }

  /** Tell whether {@link ServiceLog.since} knows everything that happened since. */
  reaches(revision: number): boolean {
    return this.#log.reaches(revision);
  }

  /** Note a change; revisions only grow. `services` is how many there are now. */
  add(revision: number, service: string, version: ServiceVersion | undefined, triggersMs: readonly number[], services: number): void {
    this.#answer = undefined;
    const past = { rowKeys: version?.rowKeys ?? [], before: { version }, triggersMs };
    this.#log.add(revision, service, past, services);
    this.#remember(past, version?.weight ?? 1);
  }

  /** What changed after `revision`, by Service. */
  since(revision: number): ReadonlyMap<string, ServicePast> {
    // A thousand watchers ask the same at the same time.
    if (this.#answer?.since !== revision) this.#answer = { since: revision, pasts: this.#log.since(revision) };
    return this.#answer.pasts;
  }

  #remember(past: { before: ServicePast["before"] }, weight: number): void {
    this.#remembering.push({ past, weight });
    this.#weight += weight;
    while (this.#weight > WEIGHT_MAX) {
      const oldest = this.#remembering.shift();
      if (oldest === undefined) return;
      this.#weight -= oldest.weight;
      oldest.past.before = undefined;
    }
  }
}

function joined(earlier: ServicePast, later: ServicePast): ServicePast {
  return {
    before: earlier.before,
    rowKeys: [...new Set([...earlier.rowKeys, ...later.rowKeys])],
    triggersMs: [...earlier.triggersMs, ...later.triggersMs].slice(-TRIGGERS_MAX),
  };
}
