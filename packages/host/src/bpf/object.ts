import { existsSync, rmSync } from "node:fs";
import { basename } from "node:path";
import { ProxyError } from "@turnout/core";
import { errno } from "../netlink/errno.ts";
import { zeroTerminated } from "../netlink/message.ts";
import { bpfError, checked, RIGHTS_HINT } from "./errors.ts";
import { duplicate, guarded, openPinned } from "./handle.ts";
import { whileHeld } from "./held.ts";
import type { Libbpf, Pointer } from "./libbpf-calls.ts";
import { KernelMap, mapFrom } from "./maps/map.ts";
import type { BpfMap } from "./maps/map.ts";
import { requireSameLayout } from "./maps/map-layout.ts";
import { capturePrint } from "./print-capture.ts";
import { KernelProgram } from "./program.ts";
import type { BpfProgram } from "./program.ts";
import { complaintOf, complaintText } from "./verifier-log.ts";

/** What is decided about one map before its object is loaded. */
export interface MapChoice {
  /** How many entries it shall have; absent: as many as the object says. */
  readonly maxEntries?: number;
  /** A path on a bpffs: the map that is pinned there is used; where there is none, the new one is pinned there. */
  readonly pin?: string;
}

/** What is decided before an object is loaded. */
export interface LoadOptions {
  /** By the map's name in C. */
  readonly maps?: Readonly<Record<string, MapChoice>>;
  /** Programs that are left out, by their name in C: of hooks that this kernel lacks. A kfunc has to be `__weak` in C as well, as libbpf looks for all that an object names. */
  readonly without?: readonly string[];
  /** Have the verifier's log of programs that it accepts, too: how many instructions it looked at. */
  readonly withLogs?: boolean;
}

/** Programs and maps in the kernel, by their names in C. Each is open until it is closed; together with {@link LoadedObject.close}. */
export interface LoadedObject {
  readonly programs: ReadonlyMap<string, BpfProgram>;
  readonly maps: ReadonlyMap<string, BpfMap>;
  /** What the verifier said of each program; empty without `withLogs`. */
  readonly verifierLogs: ReadonlyMap<string, string>;
  /** @throws {ProxyError} `not_found`. */
  program(name: string): BpfProgram;
  /** @throws {ProxyError} `not_found`. */
  map(name: string): BpfMap;
  close(): void;
}

/** The cause of the error when the kernel's verifier refuses a program: its whole log. */
export class VerifierRefusal extends Error {
  override readonly name = "VerifierRefusal";
  readonly log: string;

  constructor(log: string) {
    super("the verifier's log");
    this.log = log;
  }
}

/** The whole log of the verifier, when it was the verifier that refused to load an object. */
export function verifierLogOf(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.name === "VerifierRefusal" && "log" in cause ? String(cause.log) : undefined;
}

/** Room for one program's log; where that is not enough, the kernel keeps its end (Linux 6.4) or its beginning. Memory is only taken as far as it is written. */
const LOG_BYTES = 4 << 20;

interface NamedProgram {
  readonly name: string;
  readonly pointer: Pointer;
  readonly log: Buffer;
}

interface NamedMap {
  readonly name: string;
  readonly pointer: Pointer;
  readonly pin: string | undefined;
  /** The one that was pinned, if there was one. */
  readonly reused: KernelMap | undefined;
}

/**
 * Load a compiled object: fit it to this kernel, make its maps or use those that are pinned, have its programs verified.
 *
 * Edges: takes as long as the verifier needs, on another thread. When it fails nothing is left open or pinned that was not before. One at a time:
 * the caller sees to that.
 * @throws {ProxyError} `not_found` without the file; `invalid_object` for a map or program that isn't in it, or a pinned map of another layout;
 * `host_unsupported` when this kernel refuses a program (the verifier's last words; {@link verifierLogOf} has all) or lacks what one needs; `permission_denied`.
 */
export async function loadObject(lib: Libbpf, path: string, options: LoadOptions = {}): Promise<LoadedObject> {
  if (!existsSync(path))
    throw new ProxyError("not_found", "there is no such BPF object file", { object: path, hint: "it is compiled by: npm run build" });
  const object = lib.openObject(path);
  if (object === undefined) throw unreadable(lib.errno(), path);
  const maps: NamedMap[] = [];
  try {
    const programs = choosePrograms(lib, object, path, options);
    for (const map of chooseMaps(lib, object, path, options)) maps.push(map);
    const logs = programs.map(({ log }) => log);
    const { result, warnings } = await whileHeld(logs, () => capturePrint(lib, () => lib.loadObject(object)));
    if (result < 0) throw refusal(result, basename(path), programs, warnings);
    return takeOver(lib, programs, maps);
  } finally {
    for (const { reused } of maps) reused?.close();
    lib.closeObject(object);
  }
}

/** libbpf has numbers of its own, from 4000 on, for what is wrong with a file. @source bpf/libbpf.h enum libbpf_errno */
function unreadable(value: number, path: string): ProxyError {
  if (value >= 4000) return new ProxyError("invalid_object", `this file is no BPF object (libbpf ${value})`, { object: path });
  return bpfError(value, "a BPF object file can't be read", { object: path });
}

function choosePrograms(lib: Libbpf, object: Pointer, path: string, options: LoadOptions): readonly NamedProgram[] {
  const all = [...walk((before) => lib.nextProgram(object, before))].map((pointer) => ({ name: lib.programName(pointer), pointer }));
  const without = new Set(options.without ?? []);
  requireKnown([...without], all, "program", path);
  return all.flatMap(({ name, pointer }) => {
    if (without.has(name)) {
      checked(lib.setAutoload(pointer, false), "a program can't be left out", { object: name });
      return [];
    }
    const log = Buffer.allocUnsafeSlow(LOG_BYTES);
    log[0] = 0;
    checked(lib.setVerifierLog(pointer, lib.addressOf(log), log.length), "the verifier's log can't be asked for", { object: name });
    if (options.withLogs === true) checked(lib.setVerifierLogLevel(pointer, 1), "the verifier's log can't be asked for", { object: name });
    return [{ name, pointer, log }];
  });
}

function* chooseMaps(lib: Libbpf, object: Pointer, path: string, options: LoadOptions): Generator<NamedMap> {
  const all = [...walk((before) => lib.nextMap(object, before))].map((pointer) => ({ name: lib.mapName(pointer), pointer }));
  const choices = options.maps ?? {};
  requireKnown(Object.keys(choices), all, "map", path);
  for (const { name, pointer } of all) {
    const { maxEntries, pin } = choices[name] ?? {};
    if (maxEntries !== undefined) checked(lib.setMaxEntries(pointer, maxEntries), "a map can't be given its size", { object: name });
    if (pin === undefined || !existsSync(pin)) {
      yield { name, pointer, pin, reused: undefined };
      continue;
    }
    const reused = mapFrom(lib, openPinned(lib, pin), pin);
    yield { name, pointer, pin: undefined, reused };
    requireSameLayout(lib, pointer, reused.info, pin);
    checked(lib.reuseMapFd(pointer, reused.fd), "a pinned map can't be used again", { object: pin });
  }
}

function requireKnown(names: readonly string[], all: readonly { readonly name: string }[], what: string, path: string): void {
  for (const name of names) {
    if (all.some((one) => one.name === name)) continue;
    throw new ProxyError("invalid_object", `a BPF object has no ${what} of this name`, { object: `${name} in ${basename(path)}` });
  }
}

function* walk(next: (before: Pointer | undefined) => Pointer | undefined): Generator<Pointer> {
  for (let one = next(undefined); one !== undefined; one = next(one)) yield one;
}

function refusal(result: number, file: string, programs: readonly NamedProgram[], warnings: readonly string[]): ProxyError {
  for (const { name, log } of programs) {
    const text = zeroTerminated(log);
    const complaint = complaintOf(text);
    if (complaint === undefined) continue;
    const { code, what } = bpfError(result, "this kernel's verifier refuses a BPF program");
    const object = `${name} of ${file}: ${complaintText(complaint)}`;
    const cause = new VerifierRefusal(text);
    // EPERM is for want of a right; EACCES is the verifier's usual word for an access that it doesn't let a program have.
    if (result === -errno("EPERM")) return new ProxyError(code, what, { object, hint: RIGHTS_HINT, cause });
    return new ProxyError("host_unsupported", what, { object, cause });
  }
  const error = bpfError(result, "a BPF object can't be loaded", { object: file });
  if (error.code === "permission_denied") return error;
  // What libbpf can't fit to this kernel (a kfunc, a field, a type of map) it says in words; the number says little (EINVAL, ESRCH, ENOENT).
  return new ProxyError("host_unsupported", error.what, { object: [file, ...warnings.slice(0, 3)].join(": ") });
}

/** Have file descriptors of our own, since closing the object closes its. */
function takeOver(lib: Libbpf, programs: readonly NamedProgram[], maps: readonly NamedMap[]): LoadedObject {
  const open: (KernelMap | KernelProgram)[] = [];
  const pinned: string[] = [];
  const taken = <T extends KernelMap | KernelProgram>(fd: number, make: (fd: number) => T): T => {
    const one = guarded(duplicate(lib, checked(fd, "a BPF object gives no file descriptor")), make);
    open.push(one);
    return one;
  };
  try {
    const ownPrograms = new Map(
      programs.map(({ name, pointer }) => [name, taken(lib.programFd(pointer), (fd) => new KernelProgram(lib, fd))]),
    );
    const ownMaps = new Map(maps.map(({ name, pointer }) => [name, taken(lib.mapFd(pointer), (fd) => new KernelMap(lib, fd))]));
    for (const { name, pin } of maps) {
      const map = ownMaps.get(name);
      if (pin === undefined || map === undefined) continue;
      map.pin(pin);
      pinned.push(pin);
    }
    const verifierLogs = new Map(programs.flatMap(({ name, log }) => (log[0] === 0 ? [] : [[name, zeroTerminated(log)] as const])));
    return {
      programs: ownPrograms,
      maps: ownMaps,
      verifierLogs,
      program: (name) => found(ownPrograms, "program", name),
      map: (name) => found(ownMaps, "map", name),
      close() {
        for (const one of open) one.close();
      },
    };
  } catch (error) {
    for (const pin of pinned) rmSync(pin, { force: true });
    for (const one of open) one.close();
    throw error;
  }
}

function found<T>(all: ReadonlyMap<string, T>, what: string, name: string): T {
  const one = all.get(name);
  if (one === undefined) throw new ProxyError("not_found", `a BPF object has no ${what} of this name`, { object: name });
  return one;
}
