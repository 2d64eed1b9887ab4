import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";

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
}

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
};
