import { DEFAULT_SETTINGS, FAMILIES, NodeView, type IPFamily, type Issue, type ServicePort, type Store } from "@turnout/core";

/** One node's rows by Service, of both families at once. */
export class RowBook {
  /** kpng's requests have no settings; those that decide which endpoints are used belong to no process. */
  readonly #views: readonly { readonly family: IPFamily; readonly view: NodeView }[];
  readonly #rows = new Map<string, Map<string, ServicePort>>();
  readonly #stopHearing: () => void;
  /** Services whose rows or slices changed: not everything in slices is in rows. */
  #touched = new Set<string>();

  /** "" is a node nobody knows: nothing is local to it. `report` hears of contested addresses. */
  constructor(store: Store, nodeName: string, report: (issue: Issue) => void) {
    const settings = DEFAULT_SETTINGS;
    this.#views = FAMILIES.map((family) => ({ family, view: new NodeView(store, { nodeName, family, settings, report }) }));
    this.#stopHearing = store.onChange((change) => {
      if (change.kind === "service") this.#touched.add(change.key);
    });
  }

  /** Take in what the store heard; gives the Services, by `namespace/name`, that may be others now. */
  refresh(): ReadonlySet<string> {
    for (const { family, view } of this.#views) {
      const changes = view.pull();
      for (const row of changes?.set ?? []) this.#setRow(`${row.name.namespace}/${row.name.name}`, `${family} ${row.key}`, row);
      for (const key of changes?.delete ?? []) this.#setRow(key.slice(0, key.indexOf(":")), `${family} ${key}`, undefined);
    }
    const touched = this.#touched;
    this.#touched = new Set();
    return touched;
  }

  /** The rows of a Service as of the last {@link refresh}. */
  rowsOf(service: string): readonly ServicePort[] {
    return [...(this.#rows.get(service)?.values() ?? [])];
  }

  /** Stop following the store. */
  close(): void {
    this.#stopHearing();
    for (const { view } of this.#views) view.close();
  }

  #setRow(service: string, key: string, row: ServicePort | undefined): void {
    this.#touched.add(service);
    const rows = this.#rows.get(service) ?? new Map<string, ServicePort>();
    if (row === undefined) rows.delete(key);
    else rows.set(key, row);
    if (rows.size === 0) this.#rows.delete(service);
    else this.#rows.set(service, rows);
  }
}
