import { isEqual, type ChangeSet, type IPFamily, type ServicePort } from "@turnout/core";

/** One thing that changed, for people. */
export interface RecentChange {
  /** Each has one more than the one before. */
  readonly sequence: number;
  /** When it was heard of, by the clock's `nowMs`. */
  readonly atMs: number;
  readonly family: IPFamily;
  readonly text: string;
}

/** Changes that are kept; older ones are forgotten. */
const KEPT_MAX = 200;

/** What changed last, of all families. */
export class RecentChanges {
  readonly #kept: RecentChange[] = [];
  #sequence = 0;

  /** Note a change set; `rows` are those before it. */
  note(changes: ChangeSet, rows: ReadonlyMap<string, ServicePort>, atMs: number): void {
    const { family, full, set, delete: gone } = changes;
    if (full) return this.#add(atMs, family, `everything was told anew: ${set.length} Service ports`);
    const left = set.length + gone.length - KEPT_MAX;
    if (left > 0) this.#add(atMs, family, `${left} more Service ports changed at once`);
    for (const row of set.slice(0, KEPT_MAX)) this.#add(atMs, family, changeText(rows.get(row.key), row));
    for (const key of gone.slice(0, Math.max(0, KEPT_MAX - set.length))) this.#add(atMs, family, `${key} is gone`);
  }

  /** The sequence of the newest. */
  get newest(): number {
    return this.#sequence;
  }

  /** What came after a sequence, the oldest first. One that is yet to come was another process's: then everything. */
  since(sequence: number): readonly RecentChange[] {
    return sequence > this.#sequence ? this.#kept : this.#kept.filter((change) => change.sequence > sequence);
  }

  #add(atMs: number, family: IPFamily, text: string): void {
    this.#kept.push({ sequence: ++this.#sequence, atMs, family, text });
    if (this.#kept.length > KEPT_MAX) this.#kept.shift();
  }
}

function changeText(before: ServicePort | undefined, after: ServicePort): string {
  const { key } = after;
  const now = serving(after);
  if (before === undefined) return `${key} is new: ${now} of ${after.endpoints.length} endpoints serve`;
  const was = serving(before);
  if (was !== now) return `${key}: ${was} endpoints served, now ${now}`;
  if (before.endpoints.length !== after.endpoints.length)
    return `${key}: ${before.endpoints.length} endpoints, now ${after.endpoints.length}; ${now} serve`;
  const isElsewhere = !isEqual(before.destinations, after.destinations);
  return isElsewhere ? `${key}: its addresses or rules changed` : `${key}: its endpoints or settings changed; ${now} serve`;
}

function serving({ cluster, local }: ServicePort): number {
  return new Set([...cluster, ...local]).size;
}
