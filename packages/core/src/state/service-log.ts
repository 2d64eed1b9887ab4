import type { ServiceVersion } from "./service-version.ts";

/** One Service that changed. */
interface Entry {
  readonly revision: number;
  readonly service: string;
  past: ServicePast;
}

/** What is known of a Service before it changed. */
export interface ServicePast {
  /** Keys of rows it had at any time since. */
  readonly rowKeys: readonly string[];
  /** What it was; `version` is undefined when there was none, the whole when that is forgotten. */
  readonly before: { readonly version: ServiceVersion | undefined } | undefined;
  /** When its changes since were triggered. */
  readonly triggersMs: readonly number[];
}

const ENTRIES_MIN = 4_096;
/** Endpoints of old versions that are kept: some megabytes. */
const WEIGHT_MAX = 5_000;
/** Trigger times of one Service that are kept past a compaction. */
const TRIGGERS_MAX = 100;

/**
 * Which Services changed since which revision, as far back as it reaches, and the latest of what they were before.
 *
 * Edges: a Service that changes again moves to its newest revision when the log gets long, so it holds at most about
 * twice as many as there are; past that the oldest half is forgotten, and who is behind it needs everything.
 */
export class ServiceLog {
  #floor: number;
  readonly #entriesMin: number;
  #entries: Entry[] = [];
  /** Entries that know what was before, oldest first, and what they weigh. */
  readonly #remembering: { readonly entry: Entry; readonly weight: number }[] = [];
  #weight = 0;
  #answer: { readonly since: number; readonly pasts: ReadonlyMap<string, ServicePast> } | undefined;

  /** `floor` is the oldest revision that differences can be told to; at least `entriesMin` changes are remembered. */
  constructor(floor: number, entriesMin: number = ENTRIES_MIN) {
    this.#floor = floor;
    this.#entriesMin = entriesMin;
  }

  /** Changes remembered. */
  get size(): number {
    return this.#entries.length;
  }

  /** Tell whether {@link ServiceLog.since} knows everything that happened since. */
  reaches(revision: number): boolean {
    return revision >= this.#floor;
  }

  /** Note a change; revisions only grow. `services` is how many there are now. */
  add(revision: number, service: string, version: ServiceVersion | undefined, triggersMs: readonly number[], services: number): void {
    this.#answer = undefined;
    const entry: Entry = { revision, service, past: { rowKeys: version?.rowKeys ?? [], before: { version }, triggersMs } };
    this.#entries.push(entry);
    this.#remember(entry, version?.weight ?? 1);
    const most = Math.max(this.#entriesMin, services);
    if (this.#entries.length > 2 * most) this.#compact(most);
  }

  /** What changed after `revision`, by Service. */
  since(revision: number): ReadonlyMap<string, ServicePast> {
    // A thousand watchers ask the same at the same time.
    if (this.#answer?.since === revision) return this.#answer.pasts;
    const pasts = new Map<string, ServicePast>();
    for (let at = this.#entries.length - 1; at >= 0; at--) {
      const entry = this.#entries[at];
      if (entry === undefined || entry.revision <= revision) break;
      const later = pasts.get(entry.service);
      pasts.set(entry.service, later === undefined ? entry.past : joined(entry.past, later));
    }
    this.#answer = { since: revision, pasts };
    return pasts;
  }

  #remember(entry: Entry, weight: number): void {
    this.#remembering.push({ entry, weight });
    this.#weight += weight;
    while (this.#weight > WEIGHT_MAX) {
      const oldest = this.#remembering.shift();
      if (oldest === undefined) return;
      this.#weight -= oldest.weight;
      oldest.entry.past = { ...oldest.entry.past, before: undefined };
    }
  }

  #compact(most: number): void {
    const newest = new Map<string, Entry>();
    for (const entry of this.#entries.toReversed()) {
      const later = newest.get(entry.service);
      // Who asks from between the two would be told a wrong past: better none.
      if (later === undefined) newest.set(entry.service, entry);
      else later.past = { ...joined(entry.past, later.past), before: undefined };
    }
    this.#entries = [...newest.values()].toReversed();
    if (this.#entries.length <= most) return;
    this.#floor = this.#entries[Math.floor(this.#entries.length / 2)]?.revision ?? this.#floor;
    this.#entries = this.#entries.filter(({ revision }) => revision > this.#floor);
  }
}

function joined(earlier: ServicePast, later: ServicePast): ServicePast {
  return {
    before: earlier.before,
    rowKeys: [...new Set([...earlier.rowKeys, ...later.rowKeys])],
    triggersMs: [...earlier.triggersMs, ...later.triggersMs].slice(-TRIGGERS_MAX),
  };
}
