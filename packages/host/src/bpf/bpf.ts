import type { CgroupHook } from "./constants.ts";
import { openPinned } from "./handle.ts";
import type { Libbpf } from "./libbpf-calls.ts";
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

/** Make the real {@link Bpf}. Touches nothing yet. */
export function createBpf(): Bpf {
  return new KernelBpf();
}

class KernelBpf implements Bpf {
  /** libbpf has one place for all that it says, so objects are loaded in turn. */
  static #turn: Promise<unknown> = Promise.resolve();

  load(path: string, options: LoadOptions = {}): Promise<LoadedObject> {
    const mine = KernelBpf.#turn.then(() => loadObject(this.#lib, path, options));
    KernelBpf.#turn = Promise.allSettled([mine]);
    return mine;
  }

  createMap(spec: MapSpec): BpfMap {
    return createMap(this.#lib, spec);
  }

  openMap(where: { readonly pin: string } | { readonly id: number }): BpfMap {
    return "pin" in where ? mapFrom(this.#lib, openPinned(this.#lib, where.pin), where.pin) : mapById(this.#lib, where.id);
  }

  openProgram(pin: string): BpfProgram {
    return programFrom(this.#lib, openPinned(this.#lib, pin), pin);
  }

  openLink(pin: string): BpfLink {
    return linkFrom(this.#lib, openPinned(this.#lib, pin), pin);
  }

  attachToCgroup(program: BpfProgram, cgroup: string, hook: CgroupHook): BpfLink {
    return attachToCgroup(this.#lib, program, cgroup, hook);
  }

  attachTc(program: BpfProgram, place: TcPlace, name: TcFilterName): TcAttachment {
    return attachTc(this.#lib, program, place, name);
  }

  attachClsact(program: BpfProgram, place: TcPlace, name: TcFilterName): TcFilter {
    return attachClsact(this.#lib, program, place, name);
  }

  detachClsact(place: TcPlace, name: TcFilterName): void {
    detachClsact(this.#lib, place, name);
  }

  clsactProgram(place: TcPlace, name: TcFilterName): number | undefined {
    return clsactProgram(this.#lib, place, name);
  }

  pins(folder: string): readonly Pin[] {
    return listPins(this.#lib, folder);
  }

  removePins(folder: string): void {
    removePins(this.#lib, folder);
  }

  get #lib(): Libbpf {
    return loadLibbpf();
  }
}
