import type { Capacity } from "../../contract/backend.ts";
import type { Issue } from "../../model/api-objects.ts";
import type { ChangeSet, ServicePort } from "../../model/rows.ts";
import { serviceKeyOf } from "../../model/names.ts";
import { capacitiesCounted, Place } from "./shared-contents.ts";
import type { SharedRow } from "./shared-contents.ts";

/** Where a backend's capacities are known, and what is called with a Service of which ports are held back. */
export interface SharesOptions {
  /** Called with each change set. */
  readonly capacities: () => readonly Capacity[];
  readonly report: (issue: Issue) => void;
}

/** A row, with how much of each capacity it takes. */
interface SizedRow extends SharedRow {
  isHeld: boolean;
}

/** A Service, with what its rows take together. */
interface Wanted {
  readonly key: string;
  createdMs: number;
  readonly rows: Map<string, SizedRow>;
  readonly sums: number[];
  /** No row takes less. */
  readonly least: number[];
  held: number;
  /** What a row that is held back does not fit into. */
  lacks: Capacity | undefined;
}

/** A namespace, with what its Services take together. */
interface Namespace {
  readonly services: Map<string, Wanted>;
  readonly sums: number[];
  /** Contents by capacity, each once; emptied with each change of a row. */
  readonly distinct: Map<number, ReadonlyMap<string, number>>;
}

/** Rows that come into force and go, and Services of which the first row goes. */
interface Moves {
  readonly released: ServicePort[];
  readonly held: string[];
  readonly reported: Wanted[];
}

/**
 * Shares what a backend has a finite amount of by namespace: as long as all rows fit, each namespace has what it wants. Otherwise the namespaces that
 * want most are cut to one level, and all others keep theirs (max-min fairness). Contents that are the same count once while all fit, and otherwise
 * once for each namespace.
 *
 * Edges: which rows are in depends on what is wanted now, never on history. Of a namespace beyond the level, older Services go first. A Service is
 * reported when its first row is held back.
 * Shape: costs what changed while all fit; otherwise also the rows of namespaces beyond the level. Contents are asked for only where the sizes of all rows
 * together don't fit.
 * @source rule R-76
 */
export class NamespaceShares {
  readonly #options: SharesOptions;
  readonly #namespaces = new Map<string, Namespace>();
  readonly #namespaceOf = new Map<string, string>();
  readonly #held = new Set<Wanted>();

  constructor(options: SharesOptions) {
    this.#options = options;
  }

  /** Services of which ports are held back now. */
  issues(): Iterable<Issue> {
    return Array.from(this.#held, issueOf);
  }

  /** Return a change set without the rows that have no place, and with those that have one again. */
  limit(changes: ChangeSet): ChangeSet {
    const capacities = this.#options.capacities();
    if (capacities.length === 0) return changes;
    if (changes.full) for (const all of [this.#namespaces, this.#namespaceOf, this.#held]) all.clear();
    for (const key of changes.delete) this.#forget(key);
    for (const row of changes.set) this.#note(row, capacities);
    const hadHeld = this.#held.size > 0;
    const moves = this.#share(capacities);
    if (!hadHeld && this.#held.size === 0) return changes;
    for (const service of moves.reported) this.#options.report(issueOf(service));
    const changed = new Set(changes.set.map(({ key }) => key));
    return {
      ...changes,
      set: [...changes.set.filter(({ key }) => !this.#isHeld(key)), ...moves.released.filter(({ key }) => !changed.has(key))],
      delete: changes.full ? [] : [...changes.delete, ...moves.held],
    };
  }

  #isHeld(key: string): boolean {
    const namespace = this.#namespaces.get(this.#namespaceOf.get(key) ?? "");
    return namespace?.services.get(serviceKeyOf(key))?.rows.get(key)?.isHeld === true;
  }

  /** Take a row out; gives whether it was held back. */
  #forget(key: string): boolean {
    const name = this.#namespaceOf.get(key) ?? "";
    const namespace = this.#namespaces.get(name);
    const service = namespace?.services.get(serviceKeyOf(key));
    const row = service?.rows.get(key);
    if (namespace === undefined || service === undefined || row === undefined) return false;
    for (const { sums } of [namespace, service]) for (const [at, size] of row.sizes.entries()) sums[at] = (sums[at] ?? 0) - size;
    namespace.distinct.clear();
    this.#namespaceOf.delete(key);
    service.rows.delete(key);
    if (row.isHeld) service.held -= 1;
    if (service.held === 0) this.#held.delete(service);
    if (service.rows.size === 0) namespace.services.delete(service.key);
    if (namespace.services.size === 0) this.#namespaces.delete(name);
    return row.isHeld;
  }

  #note(row: ServicePort, capacities: readonly Capacity[]): void {
    const wasHeld = this.#forget(row.key);
    let namespace = this.#namespaces.get(row.name.namespace);
    if (namespace === undefined)
      this.#namespaces.set(row.name.namespace, (namespace = { services: new Map(), sums: capacities.map(() => 0), distinct: new Map() }));
    const key = serviceKeyOf(row.key);
    let service = namespace.services.get(key);
    if (service === undefined) {
      service = {
        key,
        createdMs: row.createdMs,
        rows: new Map(),
        sums: capacities.map(() => 0),
        least: capacities.map(() => Infinity),
        held: 0,
        lacks: undefined,
      };
      namespace.services.set(key, service);
    }
    service.createdMs = row.createdMs;
    const sizes = capacities.map(({ sizeOf }) => sizeOf(row));
    for (const { sums } of [namespace, service]) for (const [at, size] of sizes.entries()) sums[at] = (sums[at] ?? 0) + size;
    for (const [at, size] of sizes.entries()) service.least[at] = Math.min(service.least[at] ?? Infinity, size);
    service.rows.set(row.key, { row, sizes, contents: new Map(), isHeld: wasHeld });
    namespace.distinct.clear();
    this.#namespaceOf.set(row.key, row.name.namespace);
    if (wasHeld) service.held += 1;
    if (wasHeld) this.#held.add(service);
  }

  #share(capacities: readonly Capacity[]): Moves {
    const moves: Moves = { released: [], held: [], reported: [] };
    const all = [...this.#namespaces.values()];
    const counted = capacitiesCounted(capacities, all);
    if (this.#held.size === 0 && counted.every(({ level }) => level === Infinity)) return moves;
    for (const [index, { services }] of all.entries()) {
      const place = new Place(capacities, counted);
      const isWithin = place.fits(counted.map(({ sums }) => sums[index] ?? 0));
      for (const service of isWithin ? services.values() : [...services.values()].sort(byAge)) {
        if (isWithin || place.takeAll(service.rows, service.sums)) {
          if (service.held > 0) for (const row of service.rows.values()) this.#move(service, row, undefined, moves);
        } else this.#shareAmongRows(service, place, capacities, moves);
      }
    }
    return moves;
  }

  /** Of a Service that does not fit, ports that fit are in. */
  #shareAmongRows(service: Wanted, place: Place, capacities: readonly Capacity[], moves: Moves): void {
    if (service.held === service.rows.size && !place.mayFit(service.least)) return;
    for (const key of [...service.rows.keys()].sort()) {
      const row = service.rows.get(key);
      if (row !== undefined) this.#move(service, row, capacities[place.take(row)], moves);
    }
  }

  #move(service: Wanted, row: SizedRow, lacks: Capacity | undefined, moves: Moves): void {
    const isHeld = lacks !== undefined;
    if (isHeld) service.lacks = lacks;
    if (row.isHeld === isHeld) return;
    row.isHeld = isHeld;
    service.held += isHeld ? 1 : -1;
    if (isHeld) moves.held.push(row.row.key);
    else moves.released.push(row.row);
    if (service.held === 0) this.#held.delete(service);
    else if (!this.#held.has(service)) {
      this.#held.add(service);
      moves.reported.push(service);
    }
  }
}

function byAge(one: Wanted, other: Wanted): number {
  if (one.createdMs !== other.createdMs) return one.createdMs - other.createdMs;
  return one.key < other.key ? -1 : 1;
}

function issueOf({ key, held, lacks }: Wanted): Issue {
  const what = `its namespace has more than its share of the ${lacks?.max} ${lacks?.name} that this node has place for; ${held} ports of this Service are not in force`;
  return { object: `Service ${key}`, what, hint: `delete Services of this namespace, or ${lacks?.hint}` };
}
