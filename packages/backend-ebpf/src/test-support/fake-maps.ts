import { ProxyError } from "@turnout/core/backend";
import type { BatchOutcome, Elements } from "@turnout/host/bpf";
import type { WritableMap } from "../pins/map-writes.ts";

/** The process ends in the middle of a call. */
export class Killed extends Error {
  override readonly name = "Killed";
}

/** A map in memory that takes so many elements; each call is noted. */
export class FakeMap implements WritableMap {
  readonly label: string = "map fake";
  readonly info: WritableMap["info"];
  readonly valueBytes: number;
  readonly elements: Map<string, string> = new Map<string, string>();
  /** E.g. `write 3` and `delete 2`. */
  readonly calls: string[] = [];
  /** Called after each call. */
  onCall: () => void = () => undefined;
  /** How many elements it takes. */
  space: number;
  /** After how many elements that are written or deleted the process ends. */
  lifetime: number = Number.POSITIVE_INFINITY;

  /** `cpus`: how many values each element has; more than one for a per-CPU map. */
  constructor(
    keySize: number,
    valueSize: number,
    { maxEntries = 1_000_000, cpus = 1 }: { readonly maxEntries?: number; readonly cpus?: number } = {},
  ) {
    this.info = { id: 1, name: "fake", type: "hash", keySize, valueSize, maxEntries, flags: 0 };
    this.valueBytes = valueSize * cpus;
    this.space = maxEntries;
  }

  updateMany({ count, keys, values }: Elements): Promise<BatchOutcome> {
    this.calls.push(`write ${count}`);
    for (let done = 0; done < count; done += 1) {
      this.#live();
      const key = keys.toString("hex", done * this.info.keySize, (done + 1) * this.info.keySize);
      if (!this.elements.has(key) && this.elements.size >= this.space)
        return this.#called({ done, refused: new ProxyError("limit_reached", "a BPF map is full", { object: "map fake" }) });
      this.elements.set(key, values.toString("hex", done * this.valueBytes, (done + 1) * this.valueBytes));
    }
    return this.#called({ done: count, refused: undefined });
  }

  deleteMany(keys: Buffer): Promise<number> {
    const { keySize } = this.info;
    const all = Array.from({ length: keys.length / keySize }, (_, index) => keys.toString("hex", index * keySize, (index + 1) * keySize));
    this.calls.push(`delete ${all.length}`);
    let deleted = 0;
    for (const key of all) {
      this.#live();
      deleted += this.elements.delete(key) ? 1 : 0;
    }
    return this.#called(deleted);
  }

  lookup(key: Uint8Array): Buffer | undefined {
    const value = this.elements.get(Buffer.from(key).toString("hex"));
    return value === undefined ? undefined : Buffer.from(value, "hex");
  }

  delete(key: Uint8Array): boolean {
    return this.elements.delete(Buffer.from(key).toString("hex"));
  }

  async *read(): AsyncGenerator<Elements, void, undefined> {
    yield await Promise.resolve(this.held());
  }

  /** What it holds, as it is read. */
  held(): Elements {
    const [keys, values] = [[...this.elements.keys()], [...this.elements.values()]];
    return { count: keys.length, keys: Buffer.from(keys.join(""), "hex"), values: Buffer.from(values.join(""), "hex") };
  }

  #live(): void {
    this.lifetime -= 1;
    if (this.lifetime < 0) throw new Killed();
  }

  #called<T>(outcome: T): Promise<T> {
    this.onCall();
    return Promise.resolve(outcome);
  }
}
