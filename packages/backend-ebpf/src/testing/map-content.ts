// The elements of a map, read and changed before the call returns.
import { closeSync } from "node:fs";
import type { BpfMap } from "@turnout/host/bpf";
import { bpfCalls, sure } from "./calls.ts";

/** A map whose elements are looked at many times. */
export class MapContent {
  readonly map: BpfMap;
  readonly #fd: number;

  constructor(map: BpfMap) {
    this.map = map;
    this.#fd = sure(bpfCalls.openMap(map.info.id), "a map is opened by its number");
  }

  /** All elements, by their keys in hexadecimal. */
  read(): ReadonlyMap<string, Buffer> {
    const found = new Map<string, Buffer>();
    for (const key of this.#keys()) {
      const value = this.map.lookup(key);
      if (value !== undefined) found.set(key.toString("hex"), value);
    }
    return found;
  }

  /** Have it as it was. */
  restore(before: ReadonlyMap<string, Buffer>): void {
    const now = this.read();
    for (const key of now.keys()) if (!before.has(key)) this.map.delete(Buffer.from(key, "hex"));
    for (const [key, value] of before) if (now.get(key)?.equals(value) !== true) this.map.update(Buffer.from(key, "hex"), value);
  }

  /** Have it as it was made. */
  clear(): void {
    for (const key of this.#keys()) {
      if (this.map.info.type === "array") this.map.update(key, Buffer.alloc(this.map.valueBytes));
      else this.map.delete(key);
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** A list first, as what is deleted can't lead to the next one. */
  #keys(): readonly Buffer[] {
    const keys: Buffer[] = [];
    let next = Buffer.alloc(this.map.info.keySize);
    for (let before: Buffer | null = null; bpfCalls.nextKey(this.#fd, before, next) === 0; before = next, next = Buffer.alloc(next.length))
      keys.push(next);
    return keys;
  }
}
