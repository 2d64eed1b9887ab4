import { ProxyError } from "@turnout/core/backend";
import type {
  BatchOutcome,
  BpfHandle,
  BpfLink,
  BpfMap,
  BpfProgram,
  Elements,
  LinkInfo,
  MapInfo,
  PinMode,
  ProgramInfo,
  TestOutcome,
  UpdateMode,
} from "@turnout/host/bpf";
import { elementError } from "@turnout/host/bpf";
import { addressesIn } from "./element-addresses.ts";
import { groupOf } from "./element-groups.ts";
import { errno } from "./errno.ts";
import type { MapRefusal } from "./kernel-maps.ts";
import type { KernelThing, LinkThing, MapThing, ProgramThing } from "./kernel-things.ts";
import type { MemoryKernel } from "./memory-kernel.ts";

/** Something that this process has open in the kernel in memory. */
abstract class MemoryHandle<T extends KernelThing> implements BpfHandle {
  readonly label: string;
  protected readonly kernel: MemoryKernel;
  #thing: T | undefined;

  constructor(kernel: MemoryKernel, thing: T, label: string) {
    this.kernel = kernel;
    this.#thing = thing;
    thing.hold();
    this.label = label;
  }

  /** @throws {ProxyError} `not_found` after it was closed */
  get thing(): T {
    if (this.#thing === undefined) throw new ProxyError("not_found", "what is closed can't be used", { object: this.label });
    return this.#thing;
  }

  pin(path: string, mode: PinMode = "new"): void {
    const { thing } = this;
    this.kernel.change(`pinning ${this.label}`, () => this.kernel.files.pin(thing, path, mode === "replace"));
  }

  close(): void {
    this.#thing?.release();
    this.#thing = undefined;
  }
}

/** How many elements are read at a time: so few that a reader who stops after the first ones is found out. */
const READ = 16;

/** A map. */
export class MemoryMap extends MemoryHandle<MapThing> implements BpfMap {
  readonly info: MapInfo;
  readonly valueBytes: number;

  constructor(kernel: MemoryKernel, thing: MapThing) {
    const { name, type, maxEntries } = thing.info;
    super(kernel, thing, `map ${name} (${type}, ${maxEntries} entries)`);
    this.info = thing.info;
    this.valueBytes = thing.map.valueBytes;
  }

  lookup(key: Uint8Array): Buffer | undefined {
    const value = this.thing.map.look(this.#key(key));
    return value === undefined ? undefined : Buffer.from(value.bytes);
  }

  update(key: Uint8Array, value: Uint8Array, mode: UpdateMode = "any"): void {
    const name = this.#key(key);
    this.#checkLength("value", value, this.valueBytes);
    const { map } = this.thing;
    this.kernel.change(`writing to ${this.label}`, () => this.#demand(map.update(name, value, mode)), this.#addresses(key, value));
  }

  delete(key: Uint8Array): boolean {
    const name = this.#key(key);
    const { map } = this.thing;
    return this.kernel.change(`deleting from ${this.label}`, () => this.#isDone(map.delete(name)));
  }

  updateMany({ count, keys, values }: Elements): Promise<BatchOutcome> {
    this.#checkLength("row of keys", keys, count * this.info.keySize);
    this.#checkLength("row of values", values, count * this.valueBytes);
    const { map } = this.thing;
    const fault = count === 0 ? undefined : this.kernel.nextFault();
    const failsAt = fault === "before" ? 0 : fault === "during" ? count >> 1 : count;
    for (let done = 0; done < count; done += 1) {
      const [key, value] = [part(keys, done, this.info.keySize), part(values, done, this.valueBytes)];
      // The kernel has no memory for it.
      if (done === failsAt || this.kernel.isRefused(this.#addresses(key, value)))
        return Promise.resolve({ done, refused: elementError(this.info, -errno("ENOMEM")) });
      const refusal = map.update(key.toString("latin1"), value, "any");
      if (refusal !== undefined) return Promise.resolve({ done, refused: this.#error(refusal) });
    }
    this.#count(keys);
    if (fault === "after") return Promise.reject(new ProxyError("tool_failed", `${this.label} was written to, and the answer is lost`));
    return Promise.resolve({ done: count, refused: undefined });
  }

  deleteMany(keys: Buffer): Promise<number> {
    const count = keys.length / this.info.keySize;
    if (!Number.isInteger(count)) this.#checkLength("row of keys", keys, this.info.keySize);
    const { map } = this.thing;
    const fault = count === 0 ? undefined : this.kernel.nextFault();
    const failsAt = fault === "before" ? 0 : fault === "during" ? count >> 1 : count;
    let deleted = 0;
    for (let at = 0; at < count; at += 1) {
      if (at === failsAt) return Promise.reject(elementError(this.info, -errno("EINTR")));
      try {
        deleted += Number(this.#isDone(map.delete(part(keys, at, this.info.keySize).toString("latin1"))));
      } catch (error) {
        return Promise.reject(ProxyError.from(error, "tool_failed", "an element can't be deleted"));
      }
    }
    this.#count(keys);
    if (fault === "after") return Promise.reject(elementError(this.info, -errno("EINTR")));
    return Promise.resolve(deleted);
  }

  async *read(): AsyncGenerator<Elements, void, undefined> {
    const all = this.thing.map.all();
    for (let from = 0; from < all.length; from += READ) {
      const some = all.slice(from, from + READ);
      const elements = {
        count: some.length,
        keys: Buffer.concat(some.map(([key]) => Buffer.from(key, "latin1"))),
        values: Buffer.concat(some.map(([, { bytes }]) => bytes)),
      };
      yield await Promise.resolve(elements);
    }
  }

  memoryBytes(): number {
    const { keySize, maxEntries, type } = this.info;
    const elements = type === "lru-hash" || type === "array" ? maxEntries : this.thing.map.all().length;
    return elements * (keySize + this.valueBytes);
  }

  /** What is a part of something is counted once with it. */
  #count(keys: Buffer): void {
    const { keySize, name } = this.info;
    const all = Array.from({ length: keys.length / keySize }, (_, at) => part(keys, at, keySize).toString("latin1"));
    this.kernel.count(new Set(all.map((key) => groupOf(name, key) ?? key)).size);
  }

  #addresses(key: Uint8Array, value: Uint8Array): readonly string[] {
    return addressesIn(this.info.name, key, value);
  }

  #isDone(refusal: MapRefusal | undefined): boolean {
    if (refusal === "ENOENT") return false;
    this.#demand(refusal);
    return true;
  }

  #demand(refusal: MapRefusal | undefined): void {
    if (refusal !== undefined) throw this.#error(refusal);
  }

  #error(refusal: MapRefusal): ProxyError {
    return elementError(this.info, -errno(refusal));
  }

  #key(key: Uint8Array): string {
    this.#checkLength("key", key, this.info.keySize);
    return Buffer.from(key.buffer, key.byteOffset, key.length).toString("latin1");
  }

  #checkLength(what: string, bytes: Uint8Array, wanted: number): void {
    if (bytes.length === wanted) return;
    throw new ProxyError("invalid_object", `a ${what} of ${bytes.length} bytes is given where a BPF map has ${wanted}`, {
      object: this.label,
    });
  }
}

function part(bytes: Buffer, index: number, size: number): Buffer {
  return bytes.subarray(index * size, (index + 1) * size);
}

/** A program. */
export class MemoryProgram extends MemoryHandle<ProgramThing> implements BpfProgram {
  readonly info: ProgramInfo;

  constructor(kernel: MemoryKernel, thing: ProgramThing) {
    super(kernel, thing, `program ${thing.info.name}`);
    this.info = thing.info;
  }

  testRun(): TestOutcome {
    throw new ProxyError("host_unsupported", "the kernel in memory runs programs where they are attached, and not for trying", {
      object: this.label,
    });
  }
}

/** A link. */
export class MemoryLink extends MemoryHandle<LinkThing> implements BpfLink {
  info(): LinkInfo {
    return this.thing.info();
  }

  update(program: BpfProgram): void {
    const { thing } = this;
    this.kernel.change(`giving ${this.label} another program`, () => this.kernel.replace(thing, programOf(program)));
  }

  detach(): void {
    const { thing } = this;
    this.kernel.change(`detaching ${this.label}`, () => thing.detach());
  }
}

/** The program behind a handle. @throws {ProxyError} `invalid_object` for one of another kernel */
export function programOf(program: BpfProgram): ProgramThing {
  if (program instanceof MemoryProgram) return program.thing;
  throw new ProxyError("invalid_object", "this is no program of the kernel in memory", { object: program.label });
}
