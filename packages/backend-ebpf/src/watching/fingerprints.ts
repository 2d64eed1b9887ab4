import { basename } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import type { LinkInfo } from "@turnout/host/bpf";
import type { FingerprintChanges, Fingerprints } from "@turnout/host";
import { FILTER } from "../attach/attached.ts";
import type { MapParts } from "../pins/contents.ts";
import { WRITTEN_MAPS } from "../bytes/elements.ts";
import type { WrittenMap } from "../bytes/elements.ts";
import { placeOf } from "../hooks.ts";
import { LINK_FOLDER } from "../names.ts";
import type { PinnedMaps } from "../pins/pinned-maps.ts";
import type { EbpfWorld } from "../world.ts";

/** What is looked at. */
export interface FingerprintSources {
  readonly maps: Pick<PinnedMaps, "open" | "folder" | "programs">;
  readonly world: Pick<EbpfWorld, "bpf" | "pinFiles">;
  /** Keys of devices at which filters of clsact carry our programs. */
  readonly filtered: () => Iterable<string>;
}

/**
 * Read how much memory each map takes, which grows and shrinks with its elements.
 *
 * Edges: an element whose value is another one now is no sign, nor is any element before Linux 6.4.
 * @throws {ProxyError}
 */
export function readSizes({ open }: Pick<PinnedMaps, "open">): Fingerprints {
  const fingerprints = new Map<string, string>();
  for (const name of WRITTEN_MAPS) {
    const map = open?.maps.get(name);
    if (map !== undefined) fingerprints.set(`map ${name}`, String(map.memoryBytes()));
  }
  return fingerprints;
}

/** Read what is pinned. Which link a name has is not looked at. @throws an error of node:fs. */
export function readPins({ maps, world: { pinFiles } }: Pick<FingerprintSources, "maps" | "world">): Fingerprints {
  const { folder, programs, open } = maps;
  const fingerprints = new Map<string, string>();
  if (open === undefined) return fingerprints;
  const { root } = open;
  for (const path of ["", folder, ...Object.values(programs)])
    fingerprints.set(
      `pins ${path}`,
      pinFiles
        .names(path === "" ? root : `${root}/${path}`)
        .toSorted()
        .join(" "),
    );
  for (const key of pinFiles.names(`${root}/${LINK_FOLDER}`)) fingerprints.set(`pin ${key}`, "there");
  return fingerprints;
}

/** Read where links and filters are attached. @throws {ProxyError} */
export function readPlaces({ maps, world, filtered }: FingerprintSources): Fingerprints {
  const { open } = maps;
  const fingerprints = new Map<string, string>();
  if (open === undefined) return fingerprints;
  const { root } = open;
  const { bpf, pinFiles } = world;
  const links = `${root}/${LINK_FOLDER}`;
  for (const key of pinFiles.names(links)) {
    const info = linkInfo(world, `${links}/${key}`);
    if (info !== undefined) fingerprints.set(`link ${key}`, placeText(info));
  }
  for (const key of filtered()) {
    const place = placeOf(key);
    if (place !== undefined) fingerprints.set(`filter ${key}`, String(bpf.clsactProgram(place, FILTER) ?? "none"));
  }
  return fingerprints;
}

/** What signs say was touched. */
export interface TouchedParts {
  /** Where maps have more, fewer or other elements. */
  readonly maps: MapParts;
  /** Keys of links and filters that are otherwise. */
  readonly attached: ReadonlySet<string>;
  /** Pins of maps or programs came or went. */
  readonly hasOtherPins: boolean;
}

/** Sort what has changed. Pure. */
export function touchedParts(changes: FingerprintChanges): TouchedParts {
  const maps = new Map<WrittenMap, Set<number> | "all">();
  const attached = new Set<string>();
  let hasOtherPins = false;
  for (const sign of changes.keys()) {
    const [kind, name = "", part] = sign.split(" ");
    const map = name as WrittenMap;
    // One name of source ranges has elements in several parts.
    if (kind === "map" || (kind === "content" && map === "source_ranges")) maps.set(map, "all");
    else if (kind === "content") {
      const parts = maps.get(map) ?? new Set();
      if (parts !== "all") maps.set(map, parts.add(Number(part)));
    } else if (kind === "pins") hasOtherPins = true;
    else attached.add(name);
  }
  return { maps, attached, hasOtherPins };
}

/** Say what has changed, for people. Pure. */
export function explainFingerprints(changes: FingerprintChanges): string {
  const texts = Array.from(changes, ([sign, { before, now }]) => {
    const [kind, name = ""] = sign.split(" ");
    if (kind === "map") return `map ${name} has ${Number(now) < Number(before) ? "fewer" : "more"} elements`;
    if (kind === "content") return `elements of map ${name} were replaced`;
    if (kind === "pins") return `pins came or went in ${name === "" ? "the folder of all pins" : basename(name)}`;
    if (kind === "pin") return now === undefined ? `the pin of ${name} is gone` : `${name} is pinned again`;
    return `${name} was detached or replaced`;
  });
  const reported = [...new Set(texts)];
  return `${reported.slice(0, 3).join(", ")}${reported.length > 3 ? ` and ${reported.length - 3} more` : ""}; the kernel does not tell by whom`;
}

/** Undefined: it went meanwhile, or is none. */
function linkInfo({ bpf, pinFiles }: FingerprintSources["world"], pin: string): LinkInfo | undefined {
  try {
    const link = bpf.openLink(pin);
    try {
      return link.info();
    } finally {
      link.close();
    }
  } catch (error) {
    if (!pinFiles.exists(pin) || ProxyError.is(error, "invalid_object")) return undefined;
    throw error;
  }
}

function placeText(info: LinkInfo): string {
  const place = info.kind === "cgroup" ? info.cgroupId : info.kind === "tcx" ? info.ifindex : info.type;
  return `${info.programId} at ${info.kind} ${place}`;
}
