import { invariant } from "@turnout/core";
import type { MapInfo, UpdateMode } from "@turnout/host/bpf";
import { Value } from "./cpu.ts";
import type { Journal } from "./journal.ts";

/** A refusal of the kernel, by its name. */
export type MapRefusal = "E2BIG" | "EEXIST" | "EINVAL" | "ENOENT" | "ENOSPC";

/** How many CPUs the kernel in memory has. */
export const CPUS = 2;
/** On which of them programs run: not on the first, so that nobody gets by with looking there alone. */
export const RUNNING_CPU = 1;

/** What a map is made with. */
export type MapShape = Omit<MapInfo, "id">;

/** One map of the kernel in memory. Keys are texts of latin1, one character for each byte. */
export abstract class KernelMap {
  readonly shape: MapShape;
  /** Bytes of one element's value outside of the kernel. */
  readonly valueBytes: number;
  protected readonly elements: Map<string, Value> = new Map<string, Value>();
  protected readonly journal: Journal;

  constructor(shape: MapShape, journal: Journal, valueBytes: number = shape.valueSize) {
    invariant(shape.keySize > 0 && shape.valueSize > 0 && shape.maxEntries > 0, "a map has keys, values and room");
    this.shape = shape;
    this.journal = journal;
    this.valueBytes = valueBytes;
  }

  /** An element, as user space looks for it. */
  look(key: string): Value | undefined {
    return this.elements.get(key);
  }

  /** An element, as a program looks for it, which may write to it: what of it the program's CPU has. */
  find(key: string): Value | undefined {
    const value = this.look(key);
    if (value !== undefined && this.journal.isKept) {
      const before = Buffer.from(value.bytes);
      this.journal.note(() => value.bytes.set(before));
    }
    return value;
  }

  /** Write an element with values of all CPUs; gives why not. */
  update(key: string, value: Uint8Array, mode: UpdateMode): MapRefusal | undefined {
    const before = this.elements.get(key);
    const refusal = before === undefined ? (mode === "replace" ? "ENOENT" : undefined) : mode === "create" ? "EEXIST" : undefined;
    if (refusal !== undefined) return refusal;
    if (before === undefined && this.elements.size >= this.shape.maxEntries && !this.makeSpace()) return "E2BIG";
    this.put(key, new Value(Buffer.from(value)));
    return undefined;
  }

  /** Write an element as a program does: of a per-CPU map, for the CPU it runs on. */
  write(key: string, value: Uint8Array, mode: UpdateMode): MapRefusal | undefined {
    return this.update(key, value, mode);
  }

  /** Delete an element; gives why not. */
  delete(key: string): MapRefusal | undefined {
    const before = this.elements.get(key);
    if (before === undefined) return "ENOENT";
    this.journal.note(() => this.elements.set(key, before));
    this.elements.delete(key);
    return undefined;
  }

  /** All elements, in no order that anybody may rely on. */
  all(): readonly (readonly [key: string, value: Value])[] {
    return [...this.elements].toReversed();
  }

  /** A new element never lies where an old one was, so a program keeps what it has found. */
  protected put(key: string, value: Value): void {
    const before = this.elements.get(key);
    this.journal.note(() => (before === undefined ? this.elements.delete(key) : this.elements.set(key, before)));
    this.elements.set(key, value);
  }

  /** Let an element go for another one; false: none goes. */
  protected makeSpace(): boolean {
    return false;
  }
}

class HashMap extends KernelMap {}

/** Lets the element go that no program has used for longest. */
class LruMap extends KernelMap {
  readonly #uses = new Map<string, number>();
  #count = 0;

  override find(key: string): Value | undefined {
    const value = super.find(key);
    if (value !== undefined) this.#use(key);
    return value;
  }

  protected override put(key: string, value: Value): void {
    super.put(key, value);
    this.#use(key);
  }

  protected override makeSpace(): boolean {
    const use = (key: string): number => this.#uses.get(key) ?? 0;
    const [first, ...others] = this.elements.keys();
    if (first !== undefined) this.delete(others.reduce((oldest, key) => (use(key) < use(oldest) ? key : oldest), first));
    return true;
  }

  override delete(key: string): MapRefusal | undefined {
    const use = this.#uses.get(key) ?? 0;
    this.journal.note(() => this.#uses.set(key, use));
    this.#uses.delete(key);
    return super.delete(key);
  }

  #use(key: string): void {
    const before = this.#uses.get(key);
    this.journal.note(() => (before === undefined ? this.#uses.delete(key) : this.#uses.set(key, before)));
    this.#uses.set(key, (this.#count += 1));
  }
}

class PerCpuMap extends KernelMap {
  /** The parts of the CPU that programs run on, by the whole values. */
  readonly #parts = new WeakMap<Value, Value>();

  constructor(shape: MapShape, journal: Journal) {
    super(shape, journal, padded(shape.valueSize) * CPUS);
  }

  override find(key: string): Value | undefined {
    const whole = super.find(key);
    if (whole === undefined) return undefined;
    let part = this.#parts.get(whole);
    if (part === undefined) {
      const at = RUNNING_CPU * padded(this.shape.valueSize);
      part = new Value(whole.bytes.subarray(at, at + this.shape.valueSize));
      this.#parts.set(whole, part);
    }
    return part;
  }

  override write(key: string, value: Uint8Array, mode: UpdateMode): MapRefusal | undefined {
    const part = mode === "create" ? undefined : this.find(key);
    if (part !== undefined) {
      part.bytes.set(value);
      return undefined;
    }
    const whole = Buffer.alloc(this.valueBytes);
    whole.set(value, RUNNING_CPU * padded(this.shape.valueSize));
    return this.update(key, whole, mode);
  }
}

class ArrayMap extends KernelMap {
  constructor(shape: MapShape, journal: Journal) {
    super(shape, journal);
    invariant(shape.keySize === 4, "an array's keys are numbers");
    for (let index = 0; index < shape.maxEntries; index += 1) {
      const key = Buffer.alloc(4);
      key.writeUInt32LE(index);
      this.elements.set(key.toString("latin1"), new Value(Buffer.alloc(shape.valueSize)));
    }
  }

  /** In place: what a program has found changes. */
  override update(key: string, value: Uint8Array, mode: UpdateMode): MapRefusal | undefined {
    const element = this.elements.get(key);
    if (element === undefined) return "E2BIG";
    if (mode === "create") return "EEXIST";
    element.bytes.set(value);
    return undefined;
  }

  override delete(): MapRefusal | undefined {
    return "EINVAL";
  }

  override all(): readonly (readonly [key: string, value: Value])[] {
    return [...this.elements];
  }
}

/** Keys are a number of bits and as many bits; the longest that fits is found. */
class TrieMap extends KernelMap {
  /** Elements by their bits alone, and how many elements have each length. */
  readonly #prefixes = new Map<string, readonly [key: string, value: Value]>();
  readonly #lengths = new Map<number, number>();

  constructor(shape: MapShape, journal: Journal) {
    super(shape, journal);
    invariant((shape.flags & 1) !== 0, "a trie is not allocated in advance");
  }

  override look(key: string): Value | undefined {
    const [bits, data] = this.#read(key);
    for (const length of [...this.#lengths.keys()].toSorted((a, b) => b - a)) {
      const found = length > bits ? undefined : this.#prefixes.get(prefixOf(data, length));
      if (found !== undefined) return found[1];
    }
    return undefined;
  }

  override update(key: string, value: Uint8Array, mode: UpdateMode): MapRefusal | undefined {
    const [bits, data] = this.#read(key);
    if (bits > this.#bitsMax) return "EINVAL";
    const prefix = prefixOf(data, bits);
    const before = this.#prefixes.get(prefix);
    if (before === undefined && mode === "replace") return "ENOENT";
    if (before !== undefined && mode === "create") return "EEXIST";
    if (before === undefined && this.#prefixes.size >= this.shape.maxEntries) return "ENOSPC";
    if (before === undefined) this.#lengths.set(bits, (this.#lengths.get(bits) ?? 0) + 1);
    this.#prefixes.set(prefix, [key, new Value(Buffer.from(value))]);
    return undefined;
  }

  override delete(key: string): MapRefusal | undefined {
    const [bits, data] = this.#read(key);
    if (bits > this.#bitsMax) return "EINVAL";
    if (!this.#prefixes.delete(prefixOf(data, bits))) return "ENOENT";
    const left = (this.#lengths.get(bits) ?? 0) - 1;
    if (left > 0) this.#lengths.set(bits, left);
    else this.#lengths.delete(bits);
    return undefined;
  }

  override all(): readonly (readonly [key: string, value: Value])[] {
    return [...this.#prefixes.values()];
  }

  get #bitsMax(): number {
    return (this.shape.keySize - 4) * 8;
  }

  #read(key: string): readonly [bits: number, data: Buffer] {
    const bytes = Buffer.from(key, "latin1");
    return [bytes.readUInt32LE(0), bytes.subarray(4)];
  }
}

/** The first bits of some data, with their number. */
function prefixOf(data: Buffer, bits: number): string {
  const bytes = Buffer.from(data.subarray(0, Math.ceil(bits / 8)));
  const rest = bits % 8;
  const last = bytes.length - 1;
  if (rest > 0) bytes[last] = (bytes[last] ?? 0) & (0xff00 >> rest);
  return `${bits} ${bytes.toString("latin1")}`;
}

function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

/** Make a map; undefined: the kernel in memory has no such type. */
export function makeMap(shape: MapShape, journal: Journal): KernelMap | undefined {
  switch (shape.type) {
    case "hash":
      return new HashMap(shape, journal);
    case "lru-hash":
      return new LruMap(shape, journal);
    case "per-cpu-hash":
      return new PerCpuMap(shape, journal);
    case "array":
      return new ArrayMap(shape, journal);
    case "lpm-trie":
      return new TrieMap(shape, journal);
    default:
      return undefined;
  }
}
