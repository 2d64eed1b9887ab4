import type { TableView } from "./table-view.ts";

/** The views of a table, by the node that each is of. */
export class ViewsByNode {
  readonly #views = new Map<string, Set<TableView>>();

  /** Tell whether there is any view of a node. */
  has(nodeName: string): boolean {
    return this.#views.has(nodeName);
  }

  add(nodeName: string, view: TableView): void {
    const views = this.#views.get(nodeName);
    if (views === undefined) this.#views.set(nodeName, new Set([view]));
    else views.add(view);
  }

  delete(nodeName: string, view: TableView): void {
    const views = this.#views.get(nodeName);
    views?.delete(view);
    if (views?.size === 0) this.#views.delete(nodeName);
  }

  /** Have the views of these nodes look at them again; returns whether any node is another, from `revision` on. */
  refresh(nodeNames: ReadonlySet<string> | "all", revision: number): boolean {
    let isNew = false;
    for (const name of nodeNames === "all" ? this.#views.keys() : nodeNames)
      for (const view of this.#views.get(name) ?? []) if (view.refresh(revision)) isNew = true;
    return isNew;
  }
}
