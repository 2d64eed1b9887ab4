import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";

/** A bpffs as a file system; what is pinned there is opened by `Bpf` of @turnout/host/bpf. */
export interface PinFiles {
  /** Whether something is at a path. */
  exists(path: string): boolean;
  /** Make a folder, and those above it. @throws an error of node:fs. */
  makeFolder(path: string): void;
  /** Remove one pin; nothing happens where there is none. @throws an error of node:fs. */
  remove(path: string): void;
  /** The folders that are right in a folder, by name; empty where there is none. */
  folders(path: string): readonly string[];
  /** All that is right in a folder, by name; empty where there is none. */
  names(path: string): readonly string[];
  /** A number of what is pinned at a path, which is another one once something else is; undefined: there is nothing. */
  inode(path: string): number | undefined;
  /**
   * Whether somebody, this process too, has opened what is pinned at a path since this was asked last, or has pinned it since.
   *
   * Edges: who opens it by its id is not seen, nor is anybody where the bpffs is mounted with `noatime` or the pin is another user's. False where there
   * is nothing.
   */
  takeOpening(path: string): boolean;
}

/**
 * The time of the last access of what nobody has opened. The kernel notes an access whose time is not before that of the last change (`relatime`), so
 * both are set to the beginning of time.
 */
const NEVER = 0;

/** That of this host. */
export const hostPinFiles: PinFiles = {
  exists: existsSync,
  makeFolder: (path) => void mkdirSync(path, { recursive: true, mode: 0o700 }),
  remove: (path) => rmSync(path, { force: true }),
  folders(path) {
    if (!existsSync(path)) return [];
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  },
  names(path) {
    try {
      return readdirSync(path);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
      throw error;
    }
  },
  inode: (path) => statSync(path, { throwIfNoEntry: false })?.ino,
  takeOpening(path) {
    const file = statSync(path, { throwIfNoEntry: false });
    if (file === undefined || file.atimeMs === NEVER) return false;
    try {
      utimesSync(path, NEVER, NEVER);
      return true;
    } catch {
      // It is gone meanwhile, or somebody else's: then who opens it can't be seen.
      return false;
    }
  },
};
