import { basename, join } from "node:path";
import { FAMILIES } from "@turnout/core/backend";
import type { BpfMap, Elements, Pin } from "@turnout/host/bpf";
import { FILTER, linksIn, NOWHERE, programPins } from "./attach/attached.ts";
import { elementsIn } from "./pins/contents.ts";
import type { MapParts } from "./pins/contents.ts";
import { elementsOf, isInMap, WRITTEN_MAPS } from "./bytes/elements.ts";
import type { EbpfMap, WrittenMap } from "./bytes/elements.ts";
import { deviceKey, HOOKS, placeOf } from "./hooks.ts";
import { encodePlace } from "./bytes/layout.ts";
import { filledMark, isMapFolder, isProgramFolder, LINK_FOLDER, servingMark } from "./names.ts";
import type { Look, ProgramPin } from "./observe.ts";
import type { EbpfObject, MapObject } from "./objects.ts";
import type { PinnedMaps, PinWorld } from "./pins/pinned-maps.ts";
import type { EbpfWorld } from "./world.ts";

/** Nothing of ours is pinned on this host. */
const NOTHING: Omit<Look, "table"> = {
  elements: undefined,
  links: new Map(),
  filters: new Map(),
  filled: [],
  serving: [],
  folders: [],
};

/** What is looked at: these objects; or these parts of maps, and what is attached if `hasAttached`. */
export type LookPart = { readonly objects: readonly EbpfObject[] } | { readonly maps: MapParts; readonly hasAttached: boolean };

const ALL_PARTS: MapParts = new Map(WRITTEN_MAPS.map((name) => [name, "all"]));

/** What is looked at. */
export type LookWorld = Pick<PinWorld, "bpf" | "pinFiles"> & Pick<EbpfWorld, "netlink">;

/**
 * Look at what is pinned, and at filters of clsact where programs are attached by these. Changes nothing.
 *
 * Shape: everything, or `only` a part: of lists one element more than they have. What is attached is found by listing pins, which opens each of them.
 * @throws {ProxyError} what opening pins or reading maps failed with.
 */
export async function lookAtPins(
  pinned: PinnedMaps,
  world: LookWorld,
  byClsact: boolean,
  only: LookPart = { maps: ALL_PARTS, hasAttached: true },
): Promise<Omit<Look, "table">> {
  const maps = pinned.find();
  const root = pinned.open?.root;
  if (root === undefined || !world.pinFiles.exists(root)) return NOTHING;
  // Nothing else is asked for.
  if ("objects" in only && maps !== undefined && only.objects.every(isInMap))
    return { ...NOTHING, elements: await elementsAskedFor(maps, only) };
  const hasAttached = "objects" in only ? only.objects.some(({ kind }) => kind === "link" || kind === "device") : only.hasAttached;
  const pins = hasAttached ? pinned.list(root) : [];
  const links = linksIn(pins, root).flatMap(({ path, ...link }) => {
    const key = basename(path);
    return path === join(root, LINK_FOLDER, key) && (key in HOOKS || placeOf(key) !== undefined) ? [[key, link] as const] : [];
  });
  const inRoot = world.pinFiles.folders(root);
  const inMaps = world.pinFiles.folders(join(root, pinned.folder));
  const ours: readonly string[] = Object.values(pinned.programs);
  return {
    elements: maps === undefined ? undefined : await elementsAskedFor(maps, only),
    links: new Map(links),
    filters: byClsact && hasAttached ? await filtersOf(pins, root, world) : new Map(),
    // Marks go with maps of which a part is missing.
    filled: maps === undefined ? [] : FAMILIES.filter((family) => inMaps.includes(filledMark(family))),
    serving: FAMILIES.filter((family) => inRoot.includes(servingMark(family))),
    folders: [
      ...inRoot.filter((name) => isMapFolder(name) && name !== pinned.folder),
      ...inMaps.map((name) => `${pinned.folder}/${name}`).filter((path) => isProgramFolder(basename(path)) && !ours.includes(path)),
    ],
  };
}

/** Our filters of clsact at any device, by the names that links would have. */
export async function filtersOf(pins: readonly Pin[], root: string, { bpf, netlink }: LookWorld): Promise<ReadonlyMap<string, ProgramPin>> {
  const programs = programPins(pins, root);
  const found = new Map<string, ProgramPin>();
  for (const { index: ifindex } of await netlink.devices()) {
    for (const direction of ["ingress", "egress"] as const) {
      const program = bpf.clsactProgram({ ifindex, direction }, FILTER);
      if (program !== undefined) found.set(deviceKey({ ifindex, direction }), programs.get(program) ?? NOWHERE);
    }
  }
  return found;
}

/** Look up the elements of objects, key by key. */
function lookUpElements(maps: ReadonlyMap<EbpfMap, BpfMap>, objects: readonly MapObject[]): ReadonlyMap<WrittenMap, readonly Elements[]> {
  const found = new Map<WrittenMap, Elements[]>(WRITTEN_MAPS.map((name) => [name, []]));
  for (const object of objects) {
    const asked = elementsOf(object).map(({ map, key }) => ({ map, key }));
    if (object.kind === "list") asked.push({ map: "endpoints", key: encodePlace(object.key, object.value.length) });
    for (const { map, key } of asked) {
      const value = maps.get(map)?.lookup(key);
      if (value !== undefined) found.get(map)?.push({ count: 1, keys: key, values: value });
    }
  }
  return found;
}

async function elementsAskedFor(maps: ReadonlyMap<EbpfMap, BpfMap>, only: LookPart): Promise<ReadonlyMap<WrittenMap, readonly Elements[]>> {
  return "maps" in only ? await readElements(maps, only.maps) : lookUpElements(maps, only.objects.filter(isInMap));
}

async function readElements(maps: ReadonlyMap<EbpfMap, BpfMap>, wanted: MapParts): Promise<ReadonlyMap<WrittenMap, readonly Elements[]>> {
  const read = new Map<WrittenMap, readonly Elements[]>();
  for (const name of wanted.keys()) {
    const map = maps.get(name);
    const parts: Elements[] = [];
    for await (const part of map?.read() ?? []) parts.push(elementsIn(wanted, name, part));
    read.set(name, parts);
  }
  return read;
}
