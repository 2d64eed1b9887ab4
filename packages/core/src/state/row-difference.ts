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
    for (const row of after) if (!isEqual(before.find(hasKeyOf(row)), row)) this.set.push(row);
    for (const row of before) if (!after.some(hasKeyOf(row))) this.delete.push(row.key);
    return this.set.length + this.delete.length > size;
  }

  /** Add a Service's rows whose past is not known but for their keys. */
  replace(keys: readonly string[], after: readonly ServicePort[]): boolean {
    this.set.push(...after);
    this.delete.push(...keys.filter((key) => !after.some((row) => row.key === key)));
    return true;
  }
}

function hasKeyOf({ key }: ServicePort): (other: ServicePort) => boolean {
  return (other) => other.key === key;
}
