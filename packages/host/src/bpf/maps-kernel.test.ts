import { setImmediate as nextTurn } from "node:timers/promises";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { keysOf, numbered, objectFile, prefix, readAll, refusal, target, u32, u64 } from "../test-support/bpf-scene.ts";
import { createBpf } from "./bpf.ts";
import { perCpuValues } from "./maps/per-cpu.ts";
import type { LoadedObject } from "./object.ts";

const bpf = createBpf();

describe("maps of a real kernel", needs("root", "netns", "bpf"), () => {
  let object: LoadedObject;
  beforeAll(() => buildBpf("packages/host"));
  beforeEach(async () => {
    object = await bpf.load(objectFile("example"), { maps: { settings: { maxEntries: 2 } } });
    return () => object.close();
  });

  it("reads, writes and deletes one element, and says what was wrong", async () => {
    const services = object.map("services");
    const [key, other] = [target("10.96.0.1", 80), target("10.96.0.2", 80)];
    services.update(key, target("10.1.0.1", 8080), "create");
    expect([services.lookup(key)?.toString("hex"), services.lookup(other)]).toEqual(["0a0100011f900000", undefined]);
    const element = "an element of a BPF map can't be dealt with";
    const map = "map services (hash, 16 entries)";
    for (const [run, message] of [
      [() => services.update(key, key, "create"), `[already_exists] ${element} (EEXIST): ${map}`],
      [() => services.update(other, key, "replace"), `[not_found] ${element} (ENOENT): ${map}`],
      [() => services.lookup(u32(0)), `[invalid_object] a key of 4 bytes is given where a BPF map has 8: ${map}`],
      [() => services.update(key, u32(0)), `[invalid_object] a value of 4 bytes is given where a BPF map has 8: ${map}`],
      [
        () => services.updateMany({ count: 2, keys: key, values: key }),
        `[invalid_object] a row of keys of 8 bytes is given where a BPF map has 16: ${map}`,
      ],
      [() => services.deleteMany(u32(0)), `[invalid_object] a row of keys of 4 bytes is given where a BPF map has 8: ${map}`],
    ] as const)
      expect(await refusal(run)).toBe(message);
    expect([services.delete(key), services.delete(key)]).toEqual([true, false]);
    const infos = Array.from(object.maps.values(), ({ info: { name, type, keySize, valueSize, maxEntries } }) =>
      [name, type, keySize, valueSize, maxEntries].join(" "),
    );
    expect(infos.toSorted()).toEqual([
      "bytes_of per-cpu-hash 4 4 16",
      "hits per-cpu-array 4 8 4",
      "origins lru-hash 8 8 16",
      "services hash 8 8 16",
      "settings array 4 8 2",
      "sources lpm-trie 8 4 16",
    ]);
  });

  it("says which map is full and how far it came; an LRU map never is", async () => {
    const [services, origins] = [object.map("services"), object.map("origins")];
    const more = "give it more entries, or let it have fewer";
    const full = `[limit_reached] a BPF map is full (E2BIG): map services (hash, 16 entries): ${more}`;
    const prefixes = Array.from({ length: 20 }, (_, at) => prefix(`172.16.${at}.0`, 24));
    const batches = [
      await services.updateMany(numbered(20)),
      await services.updateMany(numbered(16)),
      await object.map("sources").updateMany({ count: 20, keys: Buffer.concat(prefixes), values: Buffer.alloc(80) }),
      await object.map("settings").updateMany({ count: 3, keys: Buffer.concat([0, 1, 2].map(u32)), values: Buffer.alloc(24) }),
      await origins.updateMany(numbered(1000)),
    ];
    expect(batches.map(({ done, refused }) => `${done} ${refused?.message ?? "all"}`)).toEqual([
      `16 ${full}`,
      "16 all",
      `16 [limit_reached] a BPF map is full (ENOSPC): map sources (lpm-trie, 16 entries): ${more}`,
      "2 [invalid_object] an index is beyond the end of an array: map settings (array, 2 entries)",
      "1000 all",
    ]);
    const absent = target("10.96.0.1", 80);
    expect(await refusal(() => services.update(absent, absent))).toBe(full);
    // Those that aren't there are passed over, at the beginning, in between and at the end.
    expect(await services.deleteMany(Buffer.concat([absent, numbered(20).keys, absent]))).toBe(16);
    expect(await keysOf(services)).toEqual([]);
    const remembered = (await keysOf(origins)).length;
    expect(remembered > 0 && remembered <= 16).toBe(true);
  });

  it("knows tries, arrays, and values that each CPU has for itself", async () => {
    const [sources, settings, bytesOf] = [object.map("sources"), object.map("settings"), object.map("bytes_of")];
    sources.update(prefix("10.0.0.0", 8), u32(8));
    sources.update(prefix("10.1.0.0", 16), u32(16));
    expect(["10.1.2.3", "10.2.2.3", "11.0.0.1"].map((address) => sources.lookup(prefix(address, 32))?.readUInt32LE())).toEqual([
      16,
      8,
      undefined,
    ]);
    expect(await keysOf(sources)).toEqual(["080000000a000000", "100000000a010000"]);

    settings.update(u32(1), u64(7));
    expect([settings.lookup(u32(1))?.readUInt32LE(), settings.lookup(u32(2)), (await keysOf(settings)).length]).toEqual([7, undefined, 2]);
    const array = "map settings (array, 2 entries)";
    expect([await refusal(() => settings.update(u32(2), u64(1))), await refusal(() => settings.delete(u32(1)))]).toEqual([
      `[invalid_object] an index is beyond the end of an array: ${array}`,
      `[tool_failed] an element of a BPF map can't be dealt with (EINVAL): ${array}`,
    ]);

    // Each CPU's four bytes lie in eight.
    const value = Buffer.alloc(bytesOf.valueBytes);
    for (let at = 0; at < value.length / 8; at += 1) value.writeUInt32LE(at + 1, at * 8);
    bytesOf.update(u32(5), value);
    for (const read of [bytesOf.lookup(u32(5)), ...(await readAll(bytesOf)).map(({ values }) => values)])
      expect(perCpuValues(read ?? Buffer.alloc(0), 4).map((part) => [part.length, part.readUInt32LE()])).toEqual(
        Array.from({ length: value.length / 8 }, (_, cpu) => [4, cpu + 1]),
      );
  });

  it.each(["hash", "per-cpu-hash", "lpm-trie"] as const)(
    "writes, reads and deletes 100,000 elements of a %s while the event loop turns",
    async (type) => {
      const count = 100_000;
      const map = bpf.createMap({ name: "many", type, keySize: 8, valueSize: 8, maxEntries: count });
      const elements = numbered(count, map.valueBytes);
      // A trie's keys begin with the length of the prefix.
      for (let at = 0; type === "lpm-trie" && at < count; at += 1) {
        elements.keys.writeUInt32LE(32, at * 8);
        elements.keys.writeUInt32BE(at, at * 8 + 4);
      }
      let turns = 0;
      const turning = async <T>(work: Promise<T>): Promise<T> => {
        let isOver = false;
        const result = work.finally(() => (isOver = true));
        for (; !isOver; turns += 1) await nextTurn();
        return result;
      };
      for (let round = 0; round < 2; round += 1) expect((await turning(map.updateMany(elements))).done).toBe(count);
      const batches = await turning(readAll(map));
      const seen = new Set(batches.flatMap((batch) => Array.from({ length: batch.count }, (_, at) => batch.keys.readBigUInt64LE(at * 8))));
      expect([seen.size, map.memoryBytes() > count * 16, await turning(map.deleteMany(elements.keys)), turns >= 100]).toEqual([
        count,
        true,
        count,
        true,
      ]);
      map.close();
    },
  );
});
