import type { ChangeSet, ServicePort } from "../model/rows.ts";
import { serviceKeyOf } from "../model/names.ts";
import type { Issue } from "../model/api-objects.ts";

/** What a backend is taken to carry of one Service that doesn't say otherwise: see `BackendModule.serviceEntriesMax`. */
export const SERVICE_ENTRIES_MAX = 100_000;

/** The most that one Service may ask of a host, and who is told of one that asks more. */
export interface ServiceBoundOptions {
  /** Entries: endpoints times addresses (cluster IP, node port, …), summed over the Service's ports, in one family. */
  readonly entriesMax: number;
  readonly report: (issue: Issue) => void;
}

/**
 * Leaves out Services that ask more of a host than it should carry, each as a whole, and lets them in again when they ask less.
 *
 * Edges: whether a Service is in depends on what it is now, never on its history. It is reported once each time it grows too large.
 */
export class ServiceBound {
  readonly #options: ServiceBoundOptions;
  /** All rows, by Service; lists, because most Services have one or two. */
  readonly #services = new Map<string, readonly ServicePort[]>();
  /** Each with what is reported of it. */
  #leftOut = new Map<string, Issue>();

  constructor(options: ServiceBoundOptions) {
    this.#options = options;
  }

  /** The Services that are left out now. */
  issues(): Iterable<Issue> {
    return this.#leftOut.values();
  }

  /** Say what a change set comes to without the Services that are too large. */
  limit(changes: ChangeSet): ChangeSet {
    const before = this.#leftOut;
    this.#leftOut = new Map(changes.full ? [] : before);
    if (changes.full) this.#services.clear();
    const goes: string[] = [];
    const comes: ServicePort[] = [];
    for (const [service, changed] of changesByService(changes)) {
      const rows = (this.#services.get(service) ?? []).filter(({ key }) => !changed.has(key));
      for (const row of changed.values()) if (row !== undefined) rows.push(row);
      if (rows.length === 0) this.#services.delete(service);
      else this.#services.set(service, rows);
      const isOut = this.#judge(service, rows, before.has(service));
      if (isOut) goes.push(...rows.map(({ key }) => key));
      else if (before.has(service)) comes.push(...rows);
    }
    if (before.size + this.#leftOut.size === 0) return changes;
    const fits = changes.set.filter(({ key }) => !this.#leftOut.has(serviceKeyOf(key)));
    const set = [...new Map([...comes, ...fits].map((row) => [row.key, row])).values()];
    return { ...changes, set, delete: changes.full ? [] : [...new Set([...changes.delete, ...goes])] };
  }

  /** Decide whether a Service is left out, and tell when that is new. */
  #judge(service: string, rows: readonly ServicePort[], wasOut: boolean): boolean {
    const { entriesMax, report } = this.#options;
    const entries = rows.reduce((sum, { endpoints, destinations }) => sum + endpoints.length * destinations.length, 0);
    if (entries <= entriesMax) {
      this.#leftOut.delete(service);
      return false;
    }
    const what = `left out: its endpoints times its ports and addresses are ${entries}, and ${entriesMax} are allowed`;
    const issue = { object: `Service ${service}`, what, hint: "use fewer ports or endpoints, or raise --max-service-entries" };
    this.#leftOut.set(service, issue);
    if (!wasOut) report(issue);
    return true;
  }
}

/** What becomes of each row, by Service; undefined: it goes. */
function changesByService({ set, delete: gone }: ChangeSet): ReadonlyMap<string, ReadonlyMap<string, ServicePort | undefined>> {
  const found = new Map<string, Map<string, ServicePort | undefined>>();
  const note = (key: string, row: ServicePort | undefined): void => {
    const service = serviceKeyOf(key);
    const rows = found.get(service);
    if (rows === undefined) found.set(service, new Map([[key, row]]));
    else rows.set(key, row);
  };
  for (const key of gone) note(key, undefined);
  for (const row of set) note(row.key, row);
  return found;
}
