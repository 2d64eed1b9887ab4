/**
 * What a service proxy writes into ipsets and reads from them, as text: the lines of `ipset restore`, the output of `ipset save`.
 *
 * Everything here is pure, so that what decides in a backend may use it.
 * @packageDocumentation
 */
export { netEntries, portEntry } from "./entries.ts";
export { addLine, createLine, deleteLine, destroyLine, swapLine } from "./lines.ts";
export { readSaved } from "./saved.ts";
export type { SavedSet } from "./saved.ts";
export { optionsOf, SET_ENTRIES_DEFAULT, SET_ENTRIES_MAX, SET_NAME_MAX } from "./set-spec.ts";
export type { SetSpec, SetType } from "./set-spec.ts";
