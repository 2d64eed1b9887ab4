import { dirname } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import type { KernelThing } from "./kernel-things.ts";

/** A bpffs in memory: folders, and names of things in them. */
export class BpfFiles {
  readonly root: string;
  readonly #files = new Map<string, KernelThing | "folder">();
  readonly #inodes = new Map<string, number>();
  readonly #opened = new Set<string>();
  #lastInode = 0;

  constructor(root: string) {
    this.root = root;
    this.#files.set(root, "folder");
  }

  exists(path: string): boolean {
    return this.#files.has(path);
  }

  /** What is pinned at a path. @throws {ProxyError} `not_found`, `tool_failed` for a folder. */
  open(path: string): KernelThing {
    const file = this.#files.get(path);
    const what = "what is pinned can't be opened";
    if (file === undefined) throw new ProxyError("not_found", `${what} (ENOENT)`, { object: path });
    if (file === "folder") throw new ProxyError("tool_failed", `${what} (EACCES)`, { object: path });
    this.#opened.add(path);
    return file;
  }

  inode(path: string): number | undefined {
    return this.#inodes.get(path);
  }

  takeOpening(path: string): boolean {
    return this.#opened.delete(path);
  }

  /** Make a folder, and those above it. @throws {ProxyError} `tool_failed` where a name is something else's. */
  makeFolder(path: string): void {
    this.#requireHere(path);
    if (path === this.root) return;
    const file = this.#files.get(path);
    if (file !== undefined && file !== "folder")
      throw new ProxyError("tool_failed", "a folder for pins can't be made (ENOTDIR)", { object: path });
    this.makeFolder(dirname(path));
    this.#files.set(path, "folder");
  }

  /** Give a thing a name, in place of what has it if it `replaces`. @throws {ProxyError} `already_exists`, `host_unsupported`, `permission_denied`. */
  pin(thing: KernelThing, path: string, replaces: boolean): void {
    this.#requireHere(path);
    this.makeFolder(dirname(path));
    const before = this.#files.get(path);
    if (path.slice(this.root.length).includes("."))
      throw new ProxyError("permission_denied", "a name on a bpffs has no dot (EPERM)", { object: path });
    if (before !== undefined && !replaces) throw new ProxyError("already_exists", "it can't be pinned (EEXIST)", { object: path });
    if (before === "folder") throw new ProxyError("tool_failed", "it can't be pinned (EISDIR)", { object: path });
    this.#files.set(path, thing.hold());
    this.#inodes.set(path, (this.#lastInode += 1));
    this.#opened.add(path);
    before?.release();
  }

  /** Remove a name, or a folder with all that is in it. */
  remove(path: string): void {
    for (const name of [...this.#files.keys()].filter((one) => one === path || one.startsWith(`${path}/`))) {
      const file = this.#files.get(name);
      if (name !== this.root) this.#files.delete(name);
      this.#inodes.delete(name);
      this.#opened.delete(name);
      if (file !== "folder") file?.release();
    }
  }

  /** The folders right in a folder, by name. */
  folders(path: string): readonly string[] {
    return [...this.#files].flatMap(([name, file]) =>
      file === "folder" && name !== path && dirname(name) === path ? [name.slice(path.length + 1)] : [],
    );
  }

  /** All that is right in a folder, by name. */
  names(path: string): readonly string[] {
    return [...this.#files.keys()].flatMap((name) => (name !== path && dirname(name) === path ? [name.slice(path.length + 1)] : []));
  }

  /** All pins below a folder, by their paths. */
  pins(path: string): readonly (readonly [path: string, thing: KernelThing])[] {
    if (this.exists(path)) this.#requireHere(path);
    return [...this.#files]
      .flatMap(([name, file]) => (file !== "folder" && name.startsWith(`${path}/`) ? [[name, file] as const] : []))
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
  }

  /** All folders, by their paths. */
  get allFolders(): readonly string[] {
    return [...this.#files].flatMap(([name, file]) => (file === "folder" ? [name] : []));
  }

  #requireHere(path: string): void {
    if (path === this.root || path.startsWith(`${this.root}/`)) return;
    throw new ProxyError("host_unsupported", "nothing can be pinned outside a bpffs", {
      object: path,
      hint: "mount one: mount -t bpf bpf /sys/fs/bpf",
    });
  }
}
