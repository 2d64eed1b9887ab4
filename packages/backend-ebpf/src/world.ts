import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { World } from "@turnout/core/backend";
import { createLinuxWorld } from "@turnout/host";
import type { LinuxWorld } from "@turnout/host";
import {
  createBpf,
  createSockets,
  findBpfMounts,
  inNetworkNamespace,
  listNetworkNamespaces,
  networkNamespaceCookie,
  probeBpf,
} from "@turnout/host/bpf";
import type { Bpf, BpfMounts, BpfProbe, Sockets } from "@turnout/host/bpf";
import type { ProgramFile } from "./hooks.ts";
import { digest } from "./names.ts";
import { hostPinFiles } from "./pins/pin-files.ts";
import type { PinFiles } from "./pins/pin-files.ts";

/** What this backend touches: a Linux host with eBPF. */
export interface EbpfWorld extends LinuxWorld {
  readonly bpf: Bpf;
  /** The bpffs on which it pins. */
  readonly pinFiles: PinFiles;
  /** The compiled programs. */
  readonly objectFiles: Readonly<Record<ProgramFile, string>>;
  /** Name a build of programs by what is in its file; "" where there is no such file. */
  buildOf(objectFile: string): string;
  /** Look which features this kernel has. */
  probeBpf(): Promise<BpfProbe>;
  /** Where bpffs and cgroup v2 are mounted. */
  mounts(): BpfMounts;
  /** The cookie of a network namespace, in decimal: that of this process, or of one by its path. @throws {ProxyError} `not_found` when it is gone. */
  namespaceCookie(path?: string): string;
  /** The number of a cgroup by its folder, in decimal; undefined: there is none. */
  cgroupNumber(folder: string): string | undefined;
  /** Write a file anew, for root alone. @throws an error of node:fs. */
  writeText(path: string, text: string): void;
  /** All network namespaces that can be seen from here, a path of each. */
  namespaces(): readonly string[];
  /** The sockets of a network namespace. */
  sockets(namespace: string): Sockets;
}

/** Add eBPF and the sockets of this host. Touches nothing yet. */
export function createEbpfWorld(base: World): EbpfWorld & { close(): void } {
  return {
    ...createLinuxWorld(base),
    bpf: createBpf(),
    pinFiles: hostPinFiles,
    objectFiles: { sockets: compiled("sockets"), packets: compiled("packets") },
    buildOf,
    probeBpf: () => probeBpf(),
    mounts: findBpfMounts,
    namespaceCookie: (path) => String(path === undefined ? networkNamespaceCookie() : inNetworkNamespace(path, networkNamespaceCookie)),
    // In the kernel a cgroup's number is that of its folder.
    cgroupNumber: (folder) => statSync(folder, { bigint: true, throwIfNoEntry: false })?.ino.toString(),
    writeText: (path, text) => writeFileSync(path, text, { mode: 0o600 }),
    namespaces: listNetworkNamespaces,
    sockets: createSockets,
  };
}

function compiled(file: ProgramFile): string {
  return fileURLToPath(new URL(`../dist/programs/${file}.bpf.o`, import.meta.url));
}

function buildOf(objectFile: string): string {
  return existsSync(objectFile) ? digest(readFileSync(objectFile)) : "";
}
