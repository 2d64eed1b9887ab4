import type { ChangeSet, ServicePort } from "../model/rows.ts";
import { serviceKeyOf } from "../model/names.ts";
import type { Issue } from "../model/api-objects.ts";
import { isEqual } from "../model/equal.ts";
import { ENTRIES_MADE_MAX, EndpointChoice, endpointsPerPort } from "../model/first-endpoints.ts";

/** What a backend is taken to carry of one Service that doesn't say otherwise: see `BackendModule.serviceEntriesMax`. */
export const SERVICE_ENTRIES_MAX = 100_000;

/** The most that one Service may ask of a host, and what hears of one that asks more. */
export interface ServiceBoundOptions {
  /** Entries: endpoints times addresses (cluster IP, node port, …), summed over the Service's ports, in one family. */
  readonly entriesMax: number;
  readonly report: (issue: Issue) => void;
}

/**
 * Leaves out endpoints of Services that have too many for a host, and lets them in again when there are fewer.
 *
 * Edges: which endpoints are in depends on what the Service is now, never on its history. A Service is reported once each time it grows too large.
 */
export class ServiceBound {
  readonly #options: ServiceBoundOptions;
  /** All rows, by Service; lists, because most Services have one or two. */
  readonly #services = new Map<string, readonly ServicePort[]>();
  /** Services without some of their endpoints, each with its report. */
  #shortened = new Map<string, Issue>();
  /** The rows of those as they were passed on last. */
  readonly #passed = new Map<string, readonly ServicePort[]>();
  #nodeName = "";

  constructor(options: ServiceBoundOptions) {
    this.#options = { ...options, entriesMax: Math.min(options.entriesMax, ENTRIES_MADE_MAX) };
  }

  /** The Services that go without some of their endpoints now. */
  issues(): Iterable<Issue> {
    return this.#shortened.values();
  }

  /** Say what a change set comes to with the endpoints that each Service may have. */
  limit(changes: ChangeSet): ChangeSet {
    if (changes.node !== undefined) this.#nodeName = changes.node.name;
    const before = this.#shortened;
    this.#shortened = new Map(changes.full ? [] : before);
    if (changes.full) {
      this.#services.clear();
      this.#passed.clear();
    }
    const others = new Map<string, readonly ServicePort[]>();
    for (const [service, changed] of changesByService(changes)) {
      const known = this.#services.get(service) ?? [];
      const rows = known.filter(({ key }) => !changed.has(key));
      for (const row of changed.values()) if (row !== undefined) rows.push(row);
      if (rows.length === 0) this.#services.delete(service);
      else this.#services.set(service, rows);
      const most = this.#endpointsPerPort(service, rows, before.has(service));
      if (most === Infinity && !before.has(service)) continue;
      others.set(service, this.#pass(service, rows, this.#passed.get(service) ?? known, most));
    }
    if (others.size === 0) return changes;
    const set = changes.set.filter(({ key }) => !others.has(serviceKeyOf(key)));
    return { ...changes, set: [...set, ...[...others.values()].flat()] };
  }

  /** Leave rows as many endpoints; returns those that differ from `before`, what was passed on last. */
  #pass(service: string, rows: readonly ServicePort[], before: readonly ServicePort[], most: number): readonly ServicePort[] {
    const choice = new EndpointChoice(this.#nodeName);
    const old = new Map(before.map((row) => [row.key, row]));
    const passed = rows.map((row) => {
      const [known, made] = [old.get(row.key), choice.firstOfRow(row, most)];
      return known !== undefined && isEqual(known, made) ? known : made;
    });
    if (most === Infinity) this.#passed.delete(service);
    else this.#passed.set(service, passed);
    return passed.filter((row) => row !== old.get(row.key));
  }

  /** Say how many endpoints each row may have, and report it when that is new. */
  #endpointsPerPort(service: string, rows: readonly ServicePort[], wasShortened: boolean): number {
    const { entriesMax, report } = this.#options;
    const sizes = rows.map(({ endpoints, destinations }) => ({ places: destinations.length, endpoints: endpoints.length }));
    const most = endpointsPerPort(sizes, entriesMax);
    if (most === Infinity) {
      this.#shortened.delete(service);
      return most;
    }
    const entries = sizes.reduce((sum, { places, endpoints }) => sum + places * endpoints, 0);
    const what = `too many endpoints times addresses: ${entries}, and ${entriesMax} are allowed; ${most} endpoints of each port are used`;
    const hint = `use fewer ports or endpoints${entriesMax < ENTRIES_MADE_MAX ? ", or raise --max-service-entries" : ""}`;
    const issue = { object: `Service ${service}`, what, hint };
    this.#shortened.set(service, issue);
    if (!wasShortened) report(issue);
    return most;
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
