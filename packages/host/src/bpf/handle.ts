import { closeSync, existsSync, mkdirSync, readlinkSync, renameSync, rmSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { ProxyError } from "@turnout/core";
import { errno } from "../netlink/errno.ts";
import { bpfError, checked, fileError } from "./errors.ts";
import { INFO_BYTES } from "./info.ts";
import type { Libbpf } from "./libbpf-calls.ts";

/** What {@link BpfHandle.pin} does where there is something at the path: fail with `already_exists`, or put the new thing in its place in one step. */
export type PinMode = "new" | "replace";

/** A thing of BPF that this process has open. It lives as long as somebody has it open, it is pinned, or another thing uses it. */
export interface BpfHandle {
  /** What the error messages call it. */
  readonly label: string;
  /**
   * Give it a name on a bpffs, making the folders on the way; it then outlives this process.
   *
   * Edges: names on a bpffs may have no dot.
   * @throws {ProxyError} `already_exists`, `permission_denied`, `host_unsupported` when the path isn't on a bpffs.
   */
  pin(path: string, mode?: PinMode): void;
  /** Close it; more than once is fine. */
  close(): void;
}

/** What kind of thing a file descriptor is. */
export type HandleKind = "map" | "program" | "link";

/** Number of the file system. @source linux/magic.h BPF_FS_MAGIC */
const BPF_FS = 0xcafe4a11;
// @source asm-generic/fcntl.h
const F_DUPFD_CLOEXEC = 1030;

/** Tell whether a folder is on a bpffs. @throws an error of node:fs when there is no such folder. */
export function isBpffs(folder: string): boolean {
  return statfsSync(folder).type === BPF_FS;
}

/** One file descriptor, and what all things of BPF share. */
export class KernelHandle implements BpfHandle {
  readonly label: string;
  protected readonly lib: Libbpf;
  #fd: number | undefined;
  /** Calls on other threads that use the file descriptor, which must mean the same thing until they are through. */
  #users = 0;
  #closing: number | undefined;

  constructor(lib: Libbpf, fd: number, label: string) {
    this.lib = lib;
    this.#fd = fd;
    this.label = label;
  }

  /** @throws {ProxyError} `not_found` after {@link KernelHandle.close}. */
  get fd(): number {
    if (this.#fd === undefined) throw new ProxyError("not_found", "what is closed can't be used", { object: this.label });
    return this.#fd;
  }

  pin(path: string, mode: PinMode = "new"): void {
    const fd = this.fd;
    if (!isBpffs(existingPart(dirname(path))))
      throw new ProxyError("host_unsupported", "nothing can be pinned outside a bpffs", {
        object: path,
        hint: "mount one: mount -t bpf bpf /sys/fs/bpf",
      });
    makeFolder(dirname(path));
    const what = `${this.label} can't be pinned`;
    if (mode === "new") {
      checked(this.lib.pin(fd, path), what, { object: path });
      return;
    }
    // Renaming is one step also on a bpffs: at no moment is there nothing at the path.
    const aside = `${path}_next`;
    rmSync(aside, { force: true });
    checked(this.lib.pin(fd, aside), what, { object: aside });
    try {
      renameSync(aside, path);
    } catch (error) {
      rmSync(aside, { force: true });
      throw fileError(error, what, path);
    }
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd === undefined) return;
    if (this.#users > 0) this.#closing = fd;
    else closeSync(fd);
  }

  /** Make a call on another thread; closing waits for it. @throws {ProxyError} `not_found` when it is closed already. */
  protected async use<T>(call: (fd: number) => Promise<T>): Promise<T> {
    const fd = this.fd;
    this.#users += 1;
    try {
      return await call(fd);
    } finally {
      this.#users -= 1;
      if (this.#users === 0 && this.#closing !== undefined) closeSync(this.#closing);
    }
  }
}

/** The folder itself, or the nearest one above it that there is. */
function existingPart(folder: string): string {
  return existsSync(folder) ? folder : existingPart(dirname(folder));
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw fileError(error, "a folder for pins can't be made", path);
  }
}

/** Open what is pinned at a path. @throws {ProxyError} `not_found`, `permission_denied`, `tool_failed` when something else is there. */
export function openPinned(lib: Libbpf, path: string): number {
  return checked(lib.getPinned(path), "what is pinned can't be opened", { object: path });
}

/** Make another file descriptor of the same thing. */
export function duplicate(lib: Libbpf, fd: number): number {
  const copy = lib.fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw bpfError(lib.errno(), "a file descriptor can't be duplicated");
  return copy;
}

/** Tell what a file descriptor of BPF is; undefined for anything else. */
export function kindOf(fd: number): HandleKind | undefined {
  const target = readlinkSync(`/proc/self/fd/${fd}`);
  const name = /^anon_inode:\[?bpf[-_](map|prog|link)\]?$/.exec(target)?.[1];
  return name === "prog" ? "program" : (name as "map" | "link" | undefined);
}

/** Ask the kernel what a file descriptor is. */
export function infoOf<T>(lib: Libbpf, fd: number, read: (bytes: Buffer) => T): T {
  const bytes = Buffer.alloc(INFO_BYTES);
  checked(lib.infoOf(fd, bytes, Uint32Array.of(bytes.length)), "the kernel doesn't tell what something of BPF is");
  return read(bytes);
}

/** Open with `make`, and close the file descriptor if that throws. */
export function guarded<T>(fd: number, make: (fd: number) => T): T {
  try {
    return make(fd);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Take over a file descriptor that should be of a kind. @throws {ProxyError} `invalid_object` when it isn't. */
export function takenAs<T>(kind: HandleKind, fd: number, object: string, make: (fd: number) => T): T {
  return guarded(fd, (one) => {
    const found = kindOf(one);
    if (found !== kind) throw new ProxyError("invalid_object", `this is a ${found ?? "file"} and no BPF ${kind}`, { object });
    return make(one);
  });
}

/** Tell whether a result says that there is none. */
export function isMissing(result: number): boolean {
  return result === -errno("ENOENT");
}
