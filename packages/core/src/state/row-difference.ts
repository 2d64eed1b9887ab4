import { isEqual } from "../model/equal.ts";
import type { ServicePort } from "../model/rows.ts";

/** Rows to set and to delete, gathered Service by Service. */
export class RowDifference {
  readonly set: ServicePort[] = [];
  readonly delete: string[] = [];
  readonly triggersMs: number[] = [];

  /** Add what differs between a Service's rows before and after; returns whether anything does. */
  add(before: readonly ServicePort[], after: readonly ServicePort[]): boolean {
    if (before === after) return false;
    const size = this.set.length + this.delete.length;
    const known = new Map(before.map((row) => [row.key, row]));
    for (const row of after) {
      if (!isEqual(known.get(row.key), row)) this.set.push(row);
      known.delete(row.key);
    }
    this.delete.push(...known.keys());
    return this.set.length + this.delete.length > size;
  }

  /** Add a Service's rows whose past is not known but for their keys. */
  replace(keys: readonly string[], after: readonly ServicePort[]): boolean {
    const kept = new Set(after.map(({ key }) => key));
    this.set.push(...after);
    this.delete.push(...keys.filter((key) => !kept.has(key)));
    return true;
  }
}
