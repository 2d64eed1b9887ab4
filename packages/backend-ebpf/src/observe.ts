import { invariant } from "@turnout/core";
import { objectId } from "@turnout/core/backend";
import type { IPFamily, Observed } from "@turnout/core/backend";
import type { Elements, LinkInfo } from "@turnout/host/bpf";
import { elementsOf, isInMap } from "./bytes/elements.ts";
import type { WrittenMap } from "./bytes/elements.ts";
import { HOOKS, PACKET_PROGRAMS, placeOf } from "./hooks.ts";
import {
  decodeAddress,
  decodeCookie,
  decodeDestination,
  decodeEndpoint,
  decodePlace,
  decodeService,
  encodeEndpoint,
  encodePlace,
  LIST_MAX,
  UNSPECIFIED,
} from "./bytes/layout.ts";
import { familyOfRow, mapFolderOf } from "./names.ts";
import type { DeviceObject, EbpfObject, LinkObject, TableObject } from "./objects.ts";
import { decodeAddressFlags, decodePodRange, decodeSourceRange, sortCIDRs } from "./bytes/ranges.ts";

/** Where a program is pinned. */
export interface ProgramPin {
  /** The folder, below that of all pins; "": nowhere, as after another hand removed pins. */
  readonly programs: string;
  /** Its name there. */
  readonly program: string;
}

/** A link, and where its program is pinned. */
export interface LookedAtLink extends ProgramPin {
  readonly info: LinkInfo;
}

/** What is pinned, as bytes. */
export interface Look {
  /** What the maps hold; undefined: not all of them are there. */
  readonly elements: ReadonlyMap<WrittenMap, readonly Elements[]> | undefined;
  /** Pinned links by their names. */
  readonly links: ReadonlyMap<string, LookedAtLink>;
  /** Filters of clsact by the names that links would have. */
  readonly filters: ReadonlyMap<string, ProgramPin>;
  /** The table of nft; undefined: there is none. */
  readonly table: TableObject | undefined;
  /** Families that are marked as filled. */
  readonly filled: readonly IPFamily[];
  /** Families that are marked as served. */
  readonly serving: readonly IPFamily[];
  /** Folders that other layouts, sizes and builds left, below that of all pins. */
  readonly folders: readonly string[];
}

/** For whom a look is read. */
export interface Reader {
  readonly family: IPFamily;
  /** Whether this family keeps what both share. */
  readonly isKeeper: boolean;
}

/**
 * Make objects of what is pinned. Pure.
 *
 * Shape: a family gets what is its own by addresses and names of rows, and the keeper also what both share.
 * Edges: a list of which a part is missing has "" there, and equals none that is wanted; what can be none of ours is a stray.
 */
export function readLook(
  { elements, links, filters, table, filled, serving, folders }: Look,
  { family, isKeeper }: Reader,
): Observed<EbpfObject> {
  const found: EbpfObject[] = [];
  for (const one of elements === undefined ? [] : elementObjects(elements))
    if (familyOfObject(one) === family || (isKeeper && familyOfObject(one) === undefined)) found.push(one);
  if (filled.includes(family)) found.push({ kind: "filled", key: family, value: true });
  if (serving.includes(family)) found.push({ kind: "serving", key: family, value: true });
  if (isKeeper) {
    // Of maps that are gone; those of another size are other settings'.
    const isLost = ({ programs }: ProgramPin): boolean => elements === undefined && !folders.includes(mapFolderOf(programs));
    const pinOf = (pin: ProgramPin): ProgramPin => (isLost(pin) ? { ...pin, programs: "" } : pin);
    for (const [key, link] of links)
      found.push(key in HOOKS ? linkObject(key, link.info, pinOf(link).programs) : deviceLink(key, link.info, pinOf(link)));
    for (const [key, pin] of filters) found.push(deviceObject(key, pinOf(pin)));
    if (table !== undefined) found.push(table);
    for (const key of folders) found.push({ kind: "folder", key, value: true });
  }
  return { objects: new Map(found.map((object) => [objectId(object), object])), lingering: [] };
}

function* elementObjects(elements: NonNullable<Look["elements"]>): Generator<EbpfObject> {
  const lists = new Map<string, string[]>();
  const ranges = new Map<string, string[]>();
  for (const [map, parts] of elements) {
    for (const { count, keys, values } of parts) {
      for (let index = 0; index < count; index += 1) {
        const [key, value] = [partOf(keys, index, count), partOf(values, index, count)];
        if (map === "endpoints" || map === "source_ranges") {
          if (!(map === "endpoints" ? addToList(lists, key, value) : addToRanges(ranges, key, value))) yield stray(map, key, value);
        } else {
          for (const object of elementObject(map, key, value)) yield isExactly(object, key, value) ? object : stray(map, key, value);
        }
      }
    }
  }
  for (const [key, cidrs] of ranges) yield { kind: "ranges", key, value: sortCIDRs(cidrs) };
  for (const [key, list] of lists) yield { kind: "list", key, value: Array.from(list, (endpoint) => endpoint ?? "") };
}

function* elementObject(map: Exclude<WrittenMap, "endpoints" | "source_ranges">, key: Buffer, value: Buffer): Generator<EbpfObject> {
  switch (map) {
    case "services": {
      const [destination, service] = [decodeDestination(key), decodeService(value)];
      if (destination === undefined || service === undefined) yield stray(map, key, value);
      else yield { kind: "service", key: destination, value: service };
      return;
    }
    case "counters":
      yield { kind: "counter", key: key.toString("hex"), value: true };
      return;
    case "node_addresses": {
      const flags = decodeAddressFlags(value);
      yield flags === undefined ? stray(map, key, value) : { kind: "node-address", key: decodeAddress(key), value: flags };
      return;
    }
    case "pod_ranges": {
      const cidr = decodePodRange(key);
      yield cidr === undefined ? stray(map, key, value) : { kind: "pod-range", key: cidr, value: true };
      return;
    }
    case "primaries": {
      const family = decodeAddress(key);
      const isFamily = Object.values(UNSPECIFIED).includes(family);
      yield isFamily ? { kind: "primary", key: family, value: decodeAddress(value) } : stray(map, key, value);
      return;
    }
    case "opted_out":
      yield { kind: "opt-out", key: decodeCookie(key), value: true };
      return;
    case "settings":
      // An array's element is always there; no namespace has cookie 0.
      if (decodeCookie(value) !== "0") yield { kind: "settings", key: "host-namespace", value: decodeCookie(value) };
  }
}

/** Whether an element is what is written for an object: bytes that mean nothing have to be 0. What is counted is no matter. */
function isExactly(object: EbpfObject, key: Buffer, value: Buffer): boolean {
  const [element] = isInMap(object) ? elementsOf(object) : [];
  return element !== undefined && element.key.equals(key) && (object.kind === "counter" || element.value.equals(value));
}

/** False: no list has such a place. */
function addToList(lists: Map<string, string[]>, key: Buffer, value: Buffer): boolean {
  const { list: id, index } = decodePlace(key);
  if (index >= LIST_MAX || !encodePlace(id, index).equals(key)) return false;
  let list = lists.get(id);
  if (list === undefined) lists.set(id, (list = []));
  const endpoint = decodeEndpoint(value);
  list[index] = encodeEndpoint(endpoint).equals(value) ? endpoint : "";
  return true;
}

/** False: such a range is of no name. */
function addToRanges(ranges: Map<string, string[]>, key: Buffer, value: Buffer): boolean {
  const range = decodeSourceRange(key);
  if (range === undefined || !isExactly({ kind: "ranges", key: range.id, value: [range.cidr] }, key, value)) return false;
  const cidrs = ranges.get(range.id);
  if (cidrs === undefined) ranges.set(range.id, [range.cidr]);
  else cidrs.push(range.cidr);
  return true;
}

function stray(map: WrittenMap, key: Buffer, value: Buffer): EbpfObject {
  return { kind: "stray", key: `${map} ${key.toString("hex")}`, value: value.toString("hex") };
}

/** A link as it would be wanted; one that isn't at the hook and cgroup of its name is at cgroup 0. */
function linkObject(key: string, info: LinkInfo, programs: string): LinkObject {
  const isAtHook = info.kind === "cgroup" && info.hook === HOOKS[key];
  return { kind: "link", key, value: { cgroup: isAtHook ? info.cgroupId.toString() : "0", programs } };
}

/** A link of tcx as it would be wanted; one that isn't where its name says, as its device is gone, has no program. */
function deviceLink(key: string, info: LinkInfo, pin: ProgramPin): DeviceObject {
  const place = placeOf(key);
  const isAtPlace = info.kind === "tcx" && info.ifindex === place?.ifindex && info.direction === place.direction;
  return deviceObject(key, isAtPlace ? pin : { programs: "", program: "" });
}

function deviceObject(key: string, { programs, program }: ProgramPin): DeviceObject {
  return { kind: "device", key, value: { program: PACKET_PROGRAMS.find((name) => name === program) ?? "", programs } };
}

/** Undefined: both families share it. */
function familyOfObject(object: EbpfObject): IPFamily | undefined {
  switch (object.kind) {
    case "service":
    case "node-address":
    case "pod-range":
    case "primary":
      return familyOfText(object.key);
    case "ranges":
      return familyOfText(object.value[0] ?? "");
    case "list":
      return familyOfText(object.value.find((endpoint) => endpoint !== "") ?? "");
    case "counter":
      return familyOfRow(object.key);
    case "filled":
      return object.key;
    default:
      return undefined;
  }
}

/** Of an address, with a port or without, or of a CIDR. */
function familyOfText(text: string): IPFamily {
  return text.startsWith("[") || text.indexOf(":") !== text.lastIndexOf(":") ? "IPv6" : "IPv4";
}

function partOf(bytes: Buffer, index: number, count: number): Buffer {
  const length = bytes.length / count;
  invariant(Number.isInteger(length), "elements have one length");
  return bytes.subarray(index * length, (index + 1) * length);
}
