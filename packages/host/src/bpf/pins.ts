import { closeSync, existsSync, lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ProxyError } from "@turnout/core";
import { fileError } from "./errors.ts";
import { infoOf, isBpffs, kindOf, openPinned } from "./handle.ts";
import { readLinkInfo, readMapInfo, readProgramInfo } from "./info.ts";
import type { LinkInfo, MapInfo, ProgramInfo } from "./info.ts";
import type { Libbpf } from "./libbpf-calls.ts";
import { linkFrom } from "./link.ts";

/** What is pinned at a path. */
export type Pin = { readonly path: string } & (
  | { readonly kind: "map"; readonly info: MapInfo }
  | { readonly kind: "program"; readonly info: ProgramInfo }
  | { readonly kind: "link"; readonly info: LinkInfo }
);

/**
 * List what is pinned in a folder and in the folders below it, by path.
 *
 * Edges: empty when there is no such folder. What goes meanwhile is left out.
 * @throws {ProxyError} `permission_denied`, `host_unsupported` when the folder isn't on a bpffs.
 */
export function listPins(lib: Libbpf, folder: string): readonly Pin[] {
  if (!existsSync(folder)) return [];
  requireBpffs(folder);
  return readdirSync(folder)
    .toSorted()
    .map((name) => join(folder, name))
    .flatMap((path): readonly Pin[] => {
      const isFolder = lstatSync(path, { throwIfNoEntry: false })?.isDirectory();
      if (isFolder === true) return listPins(lib, path);
      return isFolder === undefined ? [] : readPin(lib, path);
    });
}

function readPin(lib: Libbpf, path: string): readonly Pin[] {
  let fd: number;
  try {
    fd = openPinned(lib, path);
  } catch (error) {
    if (ProxyError.is(error, "not_found")) return [];
    throw error;
  }
  try {
    switch (kindOf(fd)) {
      case "map":
        return [{ path, kind: "map", info: infoOf(lib, fd, readMapInfo) }];
      case "program":
        return [{ path, kind: "program", info: infoOf(lib, fd, readProgramInfo) }];
      case "link":
        return [{ path, kind: "link", info: infoOf(lib, fd, readLinkInfo) }];
      case undefined:
        return [];
    }
  } finally {
    closeSync(fd);
  }
}

/**
 * Remove a folder of a bpffs with all that is pinned below it: links end, and maps and programs go, unless somebody has them open.
 *
 * Edges: nothing happens when there is no such folder.
 * @throws {ProxyError} `host_unsupported` when it isn't on a bpffs: files elsewhere are never removed; `permission_denied`.
 */
export function removePins(lib: Libbpf, folder: string): void {
  // A link whose last pin goes ends a little later only, so it is ended before.
  for (const pin of listPins(lib, folder)) if (pin.kind === "link" && pin.info.kind !== "other") detach(lib, pin.path);
  if (!existsSync(folder)) return;
  try {
    rmSync(folder, { recursive: true });
  } catch (error) {
    throw fileError(error, "pins can't be removed", folder);
  }
}

function detach(lib: Libbpf, path: string): void {
  const link = linkFrom(lib, openPinned(lib, path), path);
  try {
    link.detach();
  } finally {
    link.close();
  }
}

function requireBpffs(folder: string): void {
  if (isBpffs(folder)) return;
  throw new ProxyError("host_unsupported", "this folder isn't on a bpffs", {
    object: folder,
    hint: "mount one: mount -t bpf bpf /sys/fs/bpf",
  });
}
