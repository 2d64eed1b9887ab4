import { readFileSync } from "node:fs";
import { ProxyError } from "@turnout/core";
import { errno } from "../../netlink/errno.ts";
import { MAP_TYPE, UPDATE } from "../constants.ts";
import type { MapType } from "../constants.ts";
import { checked, elementError, mapObject } from "../errors.ts";
import { guarded, infoOf, isMissing, KernelHandle, takenAs } from "../handle.ts";
import type { BpfHandle } from "../handle.ts";
import { readMapInfo } from "../info.ts";
import type { MapInfo } from "../info.ts";
import type { Libbpf } from "../libbpf-calls.ts";
import { deleteInBatches, readInBatches, updateInBatches } from "./map-batches.ts";
import type { BatchOutcome, BatchTarget, ElementSpace, Elements } from "./map-batches.ts";
import { valueBytes } from "./per-cpu.ts";

/** What an update may do: anything, make what isn't there, or replace what is. */
export type UpdateMode = keyof typeof UPDATE;

/** A map to be made without an object file. Sizes are in bytes, `name` has at most 15 characters. */
export interface MapSpec {
  readonly name: string;
  readonly type: Exclude<MapType, "array-of-maps" | "hash-of-maps">;
  readonly keySize: number;
  readonly valueSize: number;
  readonly maxEntries: number;
  /** Flags as of linux/bpf.h; a trie always has BPF_F_NO_PREALLOC (1). */
  readonly flags?: number;
}

/**
 * A map of the kernel, by bytes: programs and this process see the same.
 *
 * Shape: keys and values are as the C structs lie in memory. A per-CPU value is `valueBytes` long, one part for each CPU.
 * Edges: `lookup`, `update` and `delete` take about two microseconds and are made at once; the others go in batches on another thread, so the buffers
 * they are given must stay as they are until they are through.
 */
export interface BpfMap extends BpfHandle {
  readonly info: MapInfo;
  /** Bytes of one element's value here: more than `info.valueSize` for a per-CPU map. */
  readonly valueBytes: number;
  /** The value of a key, a copy; undefined when there is none. An array has one for each index. @throws {ProxyError} `invalid_object` for a key of another length. */
  lookup(key: Uint8Array): Buffer | undefined;
  /** Write one element, in one step for programs. @throws {ProxyError} `limit_reached` when the map is full, `already_exists`, `not_found`, `invalid_object`. */
  update(key: Uint8Array, value: Uint8Array, mode?: UpdateMode): void;
  /** Delete one element; tells whether there was one. @throws {ProxyError} `invalid_object`; an array's elements can't be deleted. */
  delete(key: Uint8Array): boolean;
  /** Write many elements in order, each in one step, up to the first that is refused. @throws {ProxyError} `invalid_object` for buffers of another length. */
  updateMany(elements: Elements): Promise<BatchOutcome>;
  /** Delete many elements by their keys, one after another in `keys`; gives how many there were. @throws {ProxyError} as {@link BpfMap.delete}. */
  deleteMany(keys: Buffer): Promise<number>;
  /**
   * Read all elements, some thousand at a time.
   *
   * Shape: each in memory of its own, which the garbage collector minds; or all in the `room`, for who reads large maps often.
   * Edges: what others write or delete meanwhile may be in it or not; what nobody touches is in it once, in a trie or an array at least once.
   * @throws {ProxyError} `tool_failed`, e.g. EINTR of a trie that changes all the time: read it again.
   */
  read(space?: ElementSpace): AsyncIterable<Elements>;
  /** How much of the kernel's memory it takes now; before Linux 6.4 what it may take at most. */
  memoryBytes(): number;
}

/** {@link BpfMap} over libbpf. */
export class KernelMap extends KernelHandle implements BpfMap {
  readonly info: MapInfo;
  readonly valueBytes: number;

  constructor(lib: Libbpf, fd: number) {
    const info = infoOf(lib, fd, readMapInfo);
    super(lib, fd, mapObject(info));
    this.info = info;
    this.valueBytes = valueBytes(info, checked(lib.possibleCpus(), "the number of CPUs can't be told"));
  }

  lookup(key: Uint8Array): Buffer | undefined {
    this.#checkLength("key", key, this.info.keySize);
    const value = Buffer.alloc(this.valueBytes);
    const result = this.lib.lookup(this.fd, key, value);
    if (result >= 0) return value;
    if (isMissing(result)) return undefined;
    throw elementError(this.info, result);
  }

  update(key: Uint8Array, value: Uint8Array, mode: UpdateMode = "any"): void {
    this.#checkLength("key", key, this.info.keySize);
    this.#checkLength("value", value, this.valueBytes);
    const result = this.lib.update(this.fd, key, value, UPDATE[mode]);
    if (result < 0) throw elementError(this.info, result);
  }

  delete(key: Uint8Array): boolean {
    this.#checkLength("key", key, this.info.keySize);
    const result = this.lib.delete(this.fd, key);
    if (result < 0 && !isMissing(result)) throw elementError(this.info, result);
    return result >= 0;
  }

  async updateMany(elements: Elements): Promise<BatchOutcome> {
    this.#checkLength("row of keys", elements.keys, elements.count * this.info.keySize);
    this.#checkLength("row of values", elements.values, elements.count * this.valueBytes);
    return updateInBatches(this.#target(), elements);
  }

  async deleteMany(keys: Buffer): Promise<number> {
    if (keys.length % this.info.keySize !== 0) this.#checkLength("row of keys", keys, this.info.keySize);
    return deleteInBatches(this.#target(), keys);
  }

  read(space?: ElementSpace): AsyncIterable<Elements> {
    return readInBatches(this.#target(), space);
  }

  memoryBytes(): number {
    return Number(/^memlock:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${this.fd}`, "utf8"))?.[1] ?? 0);
  }

  #target(): BatchTarget {
    return { lib: this.lib, use: (call) => this.use(call), info: this.info, valueBytes: this.valueBytes };
  }

  #checkLength(what: string, bytes: Uint8Array, wanted: number): void {
    if (bytes.length === wanted) return;
    const wrong = `a ${what} of ${bytes.length} bytes is given where a BPF map has ${wanted}`;
    throw new ProxyError("invalid_object", wrong, { object: this.label });
  }
}

/** Make a map. @throws {ProxyError} `permission_denied`, `invalid_object` for sizes that its type doesn't have, `tool_failed`. */
export function createMap(lib: Libbpf, spec: MapSpec): KernelMap {
  const options = Buffer.alloc(56);
  options.writeBigUInt64LE(BigInt(options.length), 0);
  // @source bpf/bpf.h struct bpf_map_create_opts
  options.writeUInt32LE((spec.flags ?? 0) | (spec.type === "lpm-trie" ? 1 : 0), 28);
  const fd = lib.createMap(MAP_TYPE[spec.type], spec.name, spec.keySize, spec.valueSize, spec.maxEntries, options);
  return guarded(checked(fd, "a BPF map can't be made", { object: mapObject(spec) }), (one) => new KernelMap(lib, one));
}

/** Take over a file descriptor that should be a map's. @throws {ProxyError} `invalid_object` when it isn't. */
export function mapFrom(lib: Libbpf, fd: number, object: string): KernelMap {
  return takenAs("map", fd, object, (one) => new KernelMap(lib, one));
}

/** Open a map by its number. @throws {ProxyError} `not_found`, `permission_denied` without CAP_SYS_ADMIN. */
export function mapById(lib: Libbpf, id: number): KernelMap {
  const object = `id ${id}`;
  const fd = lib.mapById(id);
  const hint = fd === -errno("EPERM") ? { hint: "run with CAP_SYS_ADMIN, or open it by a pin" } : {};
  return mapFrom(lib, checked(fd, "a BPF map can't be opened", { object, ...hint }), object);
}
