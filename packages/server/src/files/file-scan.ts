import { lstat, open, readdir, realpath, stat } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { fileError } from "../source/cached-file.ts";

/** What is at a source's path now. */
export interface FileScan {
  /** Manifest files with a fingerprint that changes when the file is written or replaced. */
  readonly files: ReadonlyMap<string, string>;
  /** Directories to watch, with their identity; a symlink that is swapped gives another. */
  readonly directories: ReadonlyMap<string, string>;
  /** Symlinks below the directory that lead nowhere: what of all this was meant to be there can't be told. */
  readonly dangling: ReadonlySet<string>;
  readonly isDirectory: boolean;
}

/** A file's text as read in one go. */
export interface FileText {
  readonly text: string;
  readonly fingerprint: string;
  /** False: it was written to meanwhile. */
  readonly isStable: boolean;
}

const MANIFEST = /\.(ya?ml|json)$/i;

/**
 * Find the manifests at `path`: the file itself, or all *.yaml, *.yml and *.json below the directory.
 *
 * Edges: names that begin with a dot are skipped (editors' temporary files, ConfigMaps' `..data`); symlinks are followed,
 * each real directory once.
 * @throws {ProxyError} `not_found` or `permission_denied` for `path` itself; what vanishes below it is skipped.
 */
export async function scanPath(path: string): Promise<FileScan> {
  const files = new Map<string, string>();
  const directories = new Map<string, string>();
  const dangling = new Set<string>();
  try {
    const info = await stat(path, { bigint: true });
    if (info.isDirectory()) {
      await scanDirectory(path, { files, directories, dangling, visited: new Set() });
      return { files, directories, dangling, isDirectory: true };
    }
    files.set(path, fingerprintOf(info));
    for (const directory of new Set([dirname(path), dirname(await realpath(path))])) {
      directories.set(directory, identityOf(await stat(directory, { bigint: true })));
    }
    return { files, directories, dangling, isDirectory: false };
  } catch (error) {
    throw fileError(error, "the source can't be read", path);
  }
}

/** Tell whether a path is one that leads nowhere, or below one. */
export function isDangling(path: string, { dangling }: Pick<FileScan, "dangling">): boolean {
  if (dangling.size === 0) return false;
  return dangling.has(path) || [...dangling].some((link) => path.startsWith(`${link}${sep}`));
}

/** Tell whether two fingerprints are of one file, written in place, rather than of two that took turns at its name. */
export function isSameInode(a: string, b: string): boolean {
  const inodeOf = (fingerprint: string): string => fingerprint.split(" ", 2).join(" ");
  return a !== "" && inodeOf(a) === inodeOf(b);
}

/** Read a file. @throws {ProxyError} `not_found`, `permission_denied`, or `invalid_object` for anything else. */
export async function readStable(path: string): Promise<FileText> {
  try {
    const file = await open(path, "r");
    try {
      const before = fingerprintOf(await file.stat({ bigint: true }));
      const text = await file.readFile("utf8");
      const fingerprint = fingerprintOf(await file.stat({ bigint: true }));
      return { text, fingerprint, isStable: before === fingerprint };
    } finally {
      await file.close();
    }
  } catch (error) {
    throw fileError(error, "can't be read", path);
  }
}

interface Visit {
  readonly files: Map<string, string>;
  readonly directories: Map<string, string>;
  readonly dangling: Set<string>;
  readonly visited: Set<string>;
}

async function scanDirectory(path: string, visit: Visit): Promise<void> {
  const identity = identityOf(await stat(path, { bigint: true }));
  // A symlink back up would otherwise never end.
  if (visit.visited.has(identity)) return;
  visit.visited.add(identity);
  visit.directories.set(path, identity);
  for (const name of (await readdir(path)).sort()) {
    if (name.startsWith(".")) continue;
    const child = join(path, name);
    const info = await stat(child, { bigint: true }).catch(ignoreVanished);
    if (info === undefined) {
      const link = await lstat(child).catch(ignoreVanished);
      if (link?.isSymbolicLink() === true) visit.dangling.add(child);
    } else if (info.isDirectory()) await scanDirectory(child, visit).catch(ignoreVanished);
    else if (info.isFile() && MANIFEST.test(name)) visit.files.set(child, fingerprintOf(info));
  }
}

function ignoreVanished(error: unknown): undefined {
  if (typeof error === "object" && error !== null && "code" in error && error.code === "ENOENT") return undefined;
  throw error;
}

interface FileInfo {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
}

function fingerprintOf({ dev, ino, size, mtimeNs, ctimeNs }: FileInfo): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
}

function identityOf({ dev, ino }: FileInfo): string {
  return `${dev} ${ino}`;
}
