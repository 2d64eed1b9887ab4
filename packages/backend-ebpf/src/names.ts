import { hash } from "node:crypto";
import type { IPFamily } from "@turnout/core/backend";
import type { ProgramFile } from "./hooks.ts";

/** Version of the maps' layout (programs/layout.h); maps of another one are never shared. */
export const LAYOUT_VERSION = 2;

/** The folder below a bpffs in which everything of ours is pinned. */
export const PIN_FOLDER = "turnout";

/** The folder of links below {@link PIN_FOLDER}. */
export const LINK_FOLDER = "links";

/** 64 bits of a digest as 16 hexadecimal digits: tenants choose the text and could look for two alike. */
export function digest(content: string | Uint8Array): string {
  return hash("sha256", content).slice(0, 16);
}

/**
 * Name a list by its endpoints, `ip:port` in the order of the list.
 *
 * Edges: equal lists have equal names, whichever row they are of; no list is `0000000000000000`, which means none.
 */
export function listId(endpoints: readonly string[]): string {
  return digest(endpoints.join("\n"));
}

/** Name source ranges by the CIDRs in them, in their order. */
export function rangesId(cidrs: readonly string[]): string {
  return digest(cidrs.join("\n"));
}

/** What a choice names that has no list, and a service without source ranges. */
export const NO_LIST: string = "0".repeat(16);

/** Name a row in the maps. Both families share them, so the last bit tells the family: 1 for IPv6. */
export function rowId(key: string, family: IPFamily): string {
  const hex = digest(key);
  const last = Number.parseInt(hex.slice(-1), 16);
  return hex.slice(0, -1) + (family === "IPv6" ? last | 1 : last & 14).toString(16);
}

/** Name a namespace in the maps. */
export function tenantId(namespace: string): string {
  return digest(namespace);
}

/** Name what is refused on loopback as a row is named: all of it is counted together. */
export function loopbackId(family: IPFamily): string {
  return rowId("refused on loopback", family);
}

/** Tell the family of a row by its name in the maps. */
export function familyOfRow(id: string): IPFamily {
  return Number.parseInt(id.slice(-1), 16) % 2 === 1 ? "IPv6" : "IPv4";
}

/** Name the folder of maps of this layout and these sizes, below {@link PIN_FOLDER}: other sizes are other maps. */
export function mapFolder(sizes: Readonly<Record<string, number>>): string {
  const text = Object.entries(sizes)
    .map(([map, size]) => `${map} ${size}`)
    .toSorted()
    .join("\n");
  return `v${LAYOUT_VERSION}-${digest(text)}`;
}

/** Tell whether maps of some layout and size are in a folder of this name. */
export function isMapFolder(name: string): boolean {
  return /^v\d+-[0-9a-f]{16}$/.test(name);
}

/** Tell whether the maps of a folder have this layout, whatever their sizes. */
export function hasOurLayout(folder: string): boolean {
  return isMapFolder(folder) && folder.startsWith(`v${LAYOUT_VERSION}-`);
}

/** The folder of maps, of a path below {@link PIN_FOLDER}. */
export function mapFolderOf(path: string): string {
  return path.split("/")[0] ?? "";
}

/** Name the folder of one build of a file's programs, in that of their maps. */
export function programFolder(maps: string, file: ProgramFile, build: string): string {
  return `${maps}/${file}-${build}`;
}

/** Tell whether programs are in a folder of this name. */
export function isProgramFolder(name: string): boolean {
  return /^(?:sockets|packets)-[0-9a-f]{16}$/.test(name);
}

/** Name the folder, of nothing, that says that a family's services have been in the maps. */
export function filledMark(family: IPFamily): string {
  return `filled-${family}`;
}

/** Name the folder, of nothing and right below {@link PIN_FOLDER}, that says that a family was served completely. */
export function servingMark(family: IPFamily): string {
  return `serving-${family}`;
}
