import { objectId, ProxyError } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import {
  addLine,
  createLine,
  deleteLine,
  destroyLine,
  optionsOf,
  portEntry,
  SET_ENTRIES_DEFAULT,
  SET_ENTRIES_MAX,
  swapLine,
} from "@turnout/host/ipset/text";
import type { SavedSet, SetSpec } from "@turnout/host/ipset/text";
import { SETS, setName, SET_BASES } from "./names.ts";
import type { SetBase } from "./names.ts";
import { readKey } from "./objects.ts";
import type { EntryObject, SetObject } from "./objects.ts";

/** A set as an object: its type, and how its entries are made. How many there may be is no difference: it grows when it must. */
export function setObject(base: SetBase, family: IPFamily): SetObject {
  const spec = { type: SETS[base], family };
  return { kind: "set", key: setName(base, family), value: withoutSize(`${spec.type} ${optionsOf(spec)}`) };
}

/** A set that is there as an object. */
export function savedSetObject(name: string, { type, options }: SavedSet): SetObject {
  return { kind: "set", key: name, value: withoutSize(`${type} ${options}`) };
}

function withoutSize(words: string): string {
  return words.replace(/ maxelem \d+/, "");
}

/** The set that exists while another one is exchanged for a larger one: one for each family, which work side by side. */
export function largerSet(family: IPFamily): string {
  return family === "IPv4" ? "TURNOUT-LARGER" : "TURNOUT-6-LARGER";
}

/** The lines that make and fill a set that holds more than the one of this name. The first removes what an attempt left that was cut short. */
export function largerSetLines(name: string, entries: readonly string[], family: IPFamily): readonly string[] {
  const larger = largerSet(family);
  return [
    destroyLine(larger),
    createLine(larger, specOf(name, family), SET_ENTRIES_MAX),
    ...entries.map((entry) => addLine(larger, entry)),
  ];
}

/** The lines that put it in the other's place. */
export function exchangeLines(name: string, family: IPFamily): readonly string[] {
  return [swapLine(largerSet(family), name), destroyLine(largerSet(family))];
}

/** A virtual server, by its key, as a member of sets. */
export function memberOf(key: string): string {
  const { address, protocol, port } = readKey(key);
  return portEntry(address, protocol, port);
}

/** Tell a set that can be exchanged for a larger one. */
export function isSmaller(name: string, { options }: SavedSet, family: IPFamily): boolean {
  return options !== optionsOf(specOf(name, family), SET_ENTRIES_MAX);
}

/**
 * The line that makes a set which so many entries will be put into. Its room is that of kube-proxy's sets as long as that is enough: otherwise the
 * kernel refuses to take ours for kube-proxy's, and a kube-proxy that comes after Turnout can't sync.
 */
export function makeSetLine({ key }: SetObject, entries: number, family: IPFamily): string {
  return createLine(key, specOf(key, family), entries > SET_ENTRIES_DEFAULT ? SET_ENTRIES_MAX : SET_ENTRIES_DEFAULT);
}

/** The set that an entry is in. */
export function setNameOf({ key }: EntryObject): string {
  return key.slice(0, key.indexOf(" "));
}

/** What is a member by an entry. */
export function memberNameOf({ key }: EntryObject): string {
  return key.slice(key.indexOf(" ") + 1);
}

/** Name an entry among all objects. */
export function entryId(set: string, member: string): string {
  return objectId({ kind: "entry", key: `${set} ${member}`, value: true });
}

/** The line of `ipset restore` that puts an entry into a set. */
export function addEntryLine(entry: EntryObject): string {
  return addLine(setNameOf(entry), memberNameOf(entry));
}

/** The line that takes an entry out, or a set away. */
export function removeLine(object: SetObject | EntryObject): string {
  return object.kind === "set" ? destroyLine(object.key) : deleteLine(setNameOf(object), memberNameOf(object));
}

function specOf(name: string, family: IPFamily): SetSpec {
  const base = SET_BASES.find((one) => setName(one, family) === name);
  if (base === undefined) throw new ProxyError("invalid_object", "not one of our sets", { object: name });
  return { type: SETS[base], family };
}
