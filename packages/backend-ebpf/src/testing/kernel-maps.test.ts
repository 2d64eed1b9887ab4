import { invariant } from "@turnout/core";
import type { UpdateMode } from "@turnout/host/bpf";
import { describe, expect, it } from "vitest";
import { Journal } from "./journal.ts";
import { CPUS, makeMap, RUNNING_CPU } from "./kernel-maps.ts";
import type { KernelMap, MapShape } from "./kernel-maps.ts";

function make(type: MapShape["type"], changes: Partial<MapShape> = {}, journal: Journal = new Journal()): KernelMap {
  const map = makeMap(
    { name: "test", type, keySize: 4, valueSize: 4, maxEntries: 2, flags: type === "lpm-trie" ? 1 : 0, ...changes },
    journal,
  );
  invariant(map !== undefined, "the type is known");
  return map;
}

const key = (number: number): string => String.fromCharCode(number, 0, 0, 0);
const value = (number: number): Buffer => Buffer.from([number, 0, 0, 0]);
const held = (map: KernelMap): readonly (readonly [number, number])[] =>
  map
    .all()
    .map(([name, { bytes }]) => [name.charCodeAt(0), bytes[0] ?? 0] as const)
    .toSorted(([a], [b]) => a - b);

describe("every hash", () => {
  it.each(["hash", "lru-hash"] as const)("keeps to the mode of an update: %s", (type) => {
    const map = make(type);
    const tries: readonly (readonly [number, UpdateMode])[] = [
      [1, "replace"],
      [1, "create"],
      [1, "create"],
      [1, "replace"],
      [1, "any"],
    ];
    expect(tries.map(([name, mode]) => map.update(key(name), value(7), mode))).toEqual([
      "ENOENT",
      undefined,
      "EEXIST",
      undefined,
      undefined,
    ]);
    expect([map.delete(key(1)), map.delete(key(1))]).toEqual([undefined, "ENOENT"]);
  });

  it("gives what was replaced no new bytes: a program keeps what it has found", () => {
    const map = make("hash");
    map.update(key(1), value(1), "any");
    const found = map.find(key(1));
    map.update(key(1), value(2), "any");
    expect([found?.bytes[0], map.find(key(1))?.bytes[0], map.find(key(1)) === found]).toEqual([1, 2, false]);
  });
});

describe("a full map", () => {
  it("refuses one more, and none that is there: a hash by E2BIG, a trie by ENOSPC", () => {
    const [hash, trie] = [make("hash"), make("lpm-trie", { keySize: 8 })];
    const fill = (map: KernelMap, name: (number: number) => string) =>
      [1, 2, 3, 2].map((number) => map.update(name(number), value(number), "any"));
    expect(fill(hash, key)).toEqual([undefined, undefined, "E2BIG", undefined]);
    expect(fill(trie, (number) => prefix(32, number))).toEqual([undefined, undefined, "ENOSPC", undefined]);
  });

  it("lets the element go that no program has used for longest, where it is an LRU hash", () => {
    const map = make("lru-hash");
    map.update(key(1), value(1), "any");
    map.update(key(2), value(2), "any");
    map.find(key(1));
    // Looking from outside uses nothing.
    map.look(key(2));
    map.update(key(3), value(3), "any");
    expect(held(map)).toEqual([
      [1, 1],
      [3, 3],
    ]);
    expect(map.update(key(4), value(4), "replace")).toBe("ENOENT");
    expect(held(map)).toEqual([
      [1, 1],
      [3, 3],
    ]);
  });
});

describe("an array", () => {
  it("has all its elements from the beginning, none more, and changes them in place", () => {
    const map = make("array");
    const found = map.find(key(1));
    expect([
      map.update(key(1), value(5), "any"),
      map.update(key(2), value(5), "any"),
      map.update(key(0), value(5), "create"),
      map.delete(key(0)),
    ]).toEqual([undefined, "E2BIG", "EEXIST", "EINVAL"]);
    expect([found?.bytes[0], held(map)]).toEqual([
      5,
      [
        [0, 0],
        [1, 5],
      ],
    ]);
  });
});

describe("a map of which each CPU has its own values", () => {
  it("shows a program its CPU's, and the others all", () => {
    const map = make("per-cpu-hash");
    map.update(key(1), Buffer.alloc(map.valueBytes), "any");
    map.find(key(1))?.view.setUint32(0, 7, true);
    expect(map.valueBytes).toBe(8 * CPUS);
    expect(map.look(key(1))?.bytes.readUInt32LE(8 * RUNNING_CPU)).toBe(7);
    expect(map.look(key(1))?.bytes.readUInt32LE(0)).toBe(0);
    map.write(key(2), value(9), "any");
    map.write(key(2), value(8), "any");
    expect(map.look(key(2))?.bytes.toString("hex")).toBe("00000000000000000800000000000000");
  });
});

/** A prefix of so many bits of 1.2.3.`last`. */
function prefix(bits: number, last: number, first = 1): string {
  return String.fromCharCode(bits, 0, 0, 0, first, 2, 3, last);
}

describe("a trie", () => {
  it("finds the longest prefix that fits, and none that is longer than what is looked for", () => {
    const map = make("lpm-trie", { keySize: 8, maxEntries: 8 });
    for (const [bits, last] of [
      [0, 1],
      [30, 4],
      [32, 5],
    ] as const)
      map.update(prefix(bits, last), value(bits), "any");
    const found = [prefix(32, 5), prefix(32, 6), prefix(32, 8), prefix(31, 4), prefix(29, 4), prefix(32, 5, 9)].map(
      (one) => map.look(one)?.bytes[0],
    );
    expect(found).toEqual([32, 30, 0, 30, 0, 0]);
  });

  it("knows one prefix by its bits alone, and none that is too long", () => {
    const map = make("lpm-trie", { keySize: 8 });
    map.update(prefix(24, 1), value(1), "any");
    expect([map.update(prefix(24, 2), value(2), "create"), map.update(prefix(33, 1), value(2), "any"), map.delete(prefix(33, 1))]).toEqual([
      "EEXIST",
      "EINVAL",
      "EINVAL",
    ]);
    expect([map.delete(prefix(24, 9)), map.delete(prefix(24, 9)), map.look(prefix(32, 1))]).toEqual([undefined, "ENOENT", undefined]);
  });
});

describe("what is taken back", () => {
  it("is all that programs wrote: elements new, replaced, deleted, changed in place, and let go", () => {
    const journal = new Journal();
    const map = make("lru-hash", {}, journal);
    map.update(key(1), value(1), "any");
    map.update(key(2), value(2), "any");
    journal.takingBack(() => {
      map.find(key(1))?.view.setUint8(0, 9);
      map.write(key(3), value(3), "any");
      map.delete(key(1));
      map.write(key(3), value(4), "any");
      expect(held(map)).toEqual([[3, 4]]);
    });
    expect(held(map)).toEqual([
      [1, 1],
      [2, 2],
    ]);
    map.update(key(4), value(4), "any");
    expect(held(map)).toEqual([
      [2, 2],
      [4, 4],
    ]);
  });
});
