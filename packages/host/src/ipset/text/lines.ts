import { optionsOf } from "./set-spec.ts";
import type { SetSpec } from "./set-spec.ts";

/** A line of `ipset restore` that makes a set with room for so many entries, or for the kernel's default. */
export function createLine(name: string, spec: SetSpec, entriesMax?: number): string {
  return `create ${name} ${spec.type} ${optionsOf(spec, entriesMax)}`;
}

/** A line that puts an entry into a set. */
export function addLine(name: string, entry: string): string {
  return `add ${name} ${entry}`;
}

/** A line that takes an entry out of a set. */
export function deleteLine(name: string, entry: string): string {
  return `del ${name} ${entry}`;
}

/** A line that removes a set. Refused while a rule names it. */
export function destroyLine(name: string): string {
  return `destroy ${name}`;
}

/** A line that exchanges two sets of the same type and family: rules that named the one have the entries and options of the other at once. */
export function swapLine(one: string, other: string): string {
  return `swap ${one} ${other}`;
}
