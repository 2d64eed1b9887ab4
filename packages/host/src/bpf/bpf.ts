import { Mutex } from "../netlink/mutex.ts";
import type { CgroupHook } from "./constants.ts";
import { openPinned } from "./handle.ts";
import { loadLibbpf } from "./libbpf.ts";
import { attachToCgroup, linkFrom } from "./link.ts";
import type { BpfLink } from "./link.ts";
import { createMap, mapById, mapFrom } from "./maps/map.ts";
import type { BpfMap, MapSpec } from "./maps/map.ts";
import { loadObject } from "./object.ts";
import type { LoadedObject, LoadOptions } from "./object.ts";
import { listPins, removePins } from "./pins.ts";
import type { Pin } from "./pins.ts";
import { programFrom } from "./program.ts";
import type { BpfProgram } from "./program.ts";
import { attachClsact, attachTc, clsactProgram, detachClsact } from "./tc.ts";
import type { TcAttachment, TcFilter, TcFilterName, TcPlace } from "./tc.ts";

/**
 * eBPF of this host: programs, maps, and what programs are attached to. Devices are those of this process's network namespace.
 *
 * Edges: libbpf is loaded with the first call. What is opened is closed by who opened it.
 * @throws {ProxyError} every call: `tool_missing` without libbpf, `permission_denied`, `tool_failed`.
 */
export interface Bpf {
  /** Load a compiled object; see {@link LoadOptions}. One after another, each on another thread. @throws {ProxyError} see object.ts. */
  load(path: string, options?: LoadOptions): Promise<LoadedObject>;
  /** Make a map without an object file. @throws {ProxyError} `invalid_object`. */
  createMap(spec: MapSpec): BpfMap;
  /** Open a map by its pin or its id. @throws {ProxyError} `not_found`, `invalid_object` when it is something else. */
  openMap(where: { readonly pin: string } | { readonly id: number }): BpfMap;
  /** Open a pinned program. @throws {ProxyError} as {@link Bpf.openMap}. */
  openProgram(pin: string): BpfProgram;
  /** Open a pinned link. @throws {ProxyError} as {@link Bpf.openMap}. */
  openLink(pin: string): BpfLink;
  /** Attach a program to a hook of a cgroup (its folder), beside those that are there. @throws {ProxyError} `not_found`. */
  attachToCgroup(program: BpfProgram, cgroup: string, hook: CgroupHook): BpfLink;
  /** Attach a program to a device: by tcx where the kernel has it, otherwise as the filter `name` of clsact. @throws {ProxyError} `not_found`. */
  attachTc(program: BpfProgram, place: TcPlace, name: TcFilterName): TcAttachment;
  /** Attach a program as a filter of clsact, in place of one of the same name. @throws {ProxyError} `not_found`. */
  attachClsact(program: BpfProgram, place: TcPlace, name: TcFilterName): TcFilter;
  /** Take a filter of clsact away, whoever made it; nothing happens when there is none. */
  detachClsact(place: TcPlace, name: TcFilterName): void;
  /** The id of the program of a filter of clsact; undefined when there is none. */
  clsactProgram(place: TcPlace, name: TcFilterName): number | undefined;
  /** List what is pinned in a folder and below it. @throws {ProxyError} `host_unsupported` when it isn't on a bpffs. */
  pins(folder: string): readonly Pin[];
  /**
   * Remove a folder of a bpffs with all that is pinned below it: links end at once, and maps and programs go, unless somebody has them open. Nothing
   * happens when there is no such folder. @throws {ProxyError} `host_unsupported` when it isn't on a bpffs: files elsewhere are never removed.
   */
  removePins(folder: string): void;
}

/** libbpf has one place for all that it says, so objects are loaded in turn. */
const LOADING = new Mutex();

/** Make the real {@link Bpf}. Touches nothing yet. */
export function createBpf(): Bpf {
  const lib = loadLibbpf;
  return {
    load: (path, options = {}) => LOADING.run(() => loadObject(lib(), path, options)),
    createMap: (spec) => createMap(lib(), spec),
    openMap: (where) => ("pin" in where ? mapFrom(lib(), openPinned(lib(), where.pin), where.pin) : mapById(lib(), where.id)),
    openProgram: (pin) => programFrom(lib(), openPinned(lib(), pin), pin),
    openLink: (pin) => linkFrom(lib(), openPinned(lib(), pin), pin),
    attachToCgroup: (program, cgroup, hook) => attachToCgroup(lib(), program, cgroup, hook),
    attachTc: (program, place, name) => attachTc(lib(), program, place, name),
    attachClsact: (program, place, name) => attachClsact(lib(), program, place, name),
    detachClsact: (place, name) => detachClsact(lib(), place, name),
    clsactProgram: (place, name) => clsactProgram(lib(), place, name),
    pins: (folder) => listPins(lib(), folder),
    removePins: (folder) => removePins(lib(), folder),
  };
}
