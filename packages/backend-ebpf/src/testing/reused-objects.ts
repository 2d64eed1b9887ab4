// Compiled objects that one host after another uses: the verifier takes most of a second for them.
import { existsSync } from "node:fs";
import { replacing } from "@turnout/core/testing";
import type { Bpf, LoadedObject, LoadOptions } from "@turnout/host/bpf";
import { MapContent } from "./map-content.ts";

/** The real objects of one stage of the kernel. */
export class ReusedObjects {
  readonly #bpf: Bpf;
  readonly #loaded = new Map<string, LoadedObject>();
  readonly #others: LoadedObject[] = [];
  /** Those that no host has had since the last {@link ReusedObjects.reset}. */
  #fresh = new Set<LoadedObject>();

  constructor(bpf: Bpf) {
    this.#bpf = bpf;
  }

  /** What the host's backend gets: all is the kernel's, but that an object which was loaded before in the same way is not verified again. */
  get bpf(): Bpf {
    return replacing(this.#bpf, { load: (path, options = {}) => this.#load(path, options) });
  }

  /** All that hosts since the last reset have loaded. */
  inUse(): readonly LoadedObject[] {
    return [...[...this.#loaded.values()].filter((object) => !this.#fresh.has(object)), ...this.#others];
  }

  /** Empty all maps, for another host: nothing is attached or pinned any more. */
  reset(): void {
    for (const other of this.#others.splice(0)) other.close();
    for (const object of this.inUse())
      for (const map of object.maps.values()) {
        const content = new MapContent(map);
        content.clear();
        content.close();
      }
    this.#fresh = new Set(this.#loaded.values());
  }

  close(): void {
    for (const object of [...this.#loaded.values(), ...this.#others.splice(0)]) object.close();
    this.#loaded.clear();
  }

  async #load(path: string, options: LoadOptions): Promise<LoadedObject> {
    const key = keyOf(path, options);
    const before = this.#loaded.get(key);
    if (before !== undefined && this.#fresh.delete(before) && this.#pin(before, options)) return borrowed(before);
    const object = await this.#bpf.load(path, options);
    if (before === undefined) this.#loaded.set(key, object);
    else this.#others.push(object);
    return borrowed(object);
  }

  /** Pin maps as loading would; false: other maps are pinned there, and these can't be used. */
  #pin(object: LoadedObject, { maps = {} }: LoadOptions): boolean {
    const pins = Object.entries(maps).flatMap(([name, { pin }]) => (pin === undefined ? [] : [[object.map(name), pin] as const]));
    for (const [map, pin] of pins) {
      if (!existsSync(pin)) continue;
      const there = this.#bpf.openMap({ pin });
      const isSame = there.info.id === map.info.id;
      there.close();
      if (!isSame) return false;
    }
    for (const [map, pin] of pins) if (!existsSync(pin)) map.pin(pin);
    return true;
  }
}

/** Whoever loaded it closes it, and the next one needs it. */
function borrowed(object: LoadedObject): LoadedObject {
  return replacing(object, { close: () => undefined });
}

/** Pins are the host's own, sizes and programs are not. */
function keyOf(path: string, { maps = {}, without = [], withLogs = false }: LoadOptions): string {
  const sizes = Object.entries(maps).map(([name, { pin, maxEntries }]) => [name, pin !== undefined, maxEntries]);
  return JSON.stringify([path, sizes, without, withLogs]);
}
