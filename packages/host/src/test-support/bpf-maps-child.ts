// Run by bpf/maps-kernel.test.ts; prints what it saw as JSON.
import { setImmediate as nextTurn } from "node:timers/promises";
import { createBpf } from "../bpf/bpf.ts";
import { perCpuValues } from "../bpf/maps/per-cpu.ts";
import { keysOf, numbered, objectFile, runScenario, prefix, readAll, refusal, target, u32, u64 } from "./bpf-scene.ts";

const bpf = createBpf();
const EXAMPLE = objectFile("example");

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async elements() {
    const object = await bpf.load(EXAMPLE);
    const services = object.map("services");
    const key = target("10.96.0.1", 80);
    const other = target("10.96.0.2", 80);
    services.update(key, target("10.1.0.1", 8080), "create");
    const found = [services.lookup(key)?.toString("hex"), services.lookup(other) === undefined];
    const refused = [
      await refusal(() => services.update(key, key, "create")),
      await refusal(() => services.update(other, key, "replace")),
      await refusal(() => services.lookup(u32(0))),
      await refusal(() => services.update(key, u32(0))),
      await refusal(() => services.updateMany({ count: 2, keys: key, values: key })),
      await refusal(() => services.deleteMany(u32(0))),
    ];
    const deleted = [services.delete(key), services.delete(key)];
    const infos = Array.from(object.maps.values(), ({ info: { name, type, keySize, valueSize, maxEntries } }) =>
      [name, type, keySize, valueSize, maxEntries].join(" "),
    );
    object.close();
    return { found, refused, deleted, infos: infos.toSorted() };
  },

  async full() {
    const object = await bpf.load(EXAMPLE, { maps: { settings: { maxEntries: 2 } } });
    const services = object.map("services");
    const outcome = await services.updateMany(numbered(20));
    const one = await refusal(() => services.update(target("10.96.0.1", 80), target("10.96.0.1", 80)));
    const again = await services.updateMany(numbered(16));
    // Those that aren't there are passed over, at the beginning, in between and at the end.
    const absent = target("10.96.0.1", 80);
    const deleted = await services.deleteMany(Buffer.concat([absent, numbered(20).keys, absent]));
    const left = (await keysOf(services)).length;
    const prefixes = Array.from({ length: 20 }, (_, at) => prefix(`172.16.${at}.0`, 24));
    const trie = await object.map("sources").updateMany({ count: 20, keys: Buffer.concat(prefixes), values: Buffer.alloc(80) });
    const array = await object.map("settings").updateMany({ count: 3, keys: Buffer.concat([0, 1, 2].map(u32)), values: Buffer.alloc(24) });
    // An LRU map forgets instead of being full.
    const lru = await object.map("origins").updateMany(numbered(1000));
    const remembered = (await keysOf(object.map("origins"))).length;
    object.close();
    return {
      batches: [outcome, again, trie, array, lru].map(({ done, refused }) => `${done} ${refused?.message ?? "all"}`),
      one,
      deleted,
      left,
      forgets: remembered > 0 && remembered <= 16,
    };
  },

  async kinds() {
    const object = await bpf.load(EXAMPLE);
    const sources = object.map("sources");
    sources.update(prefix("10.0.0.0", 8), u32(8));
    sources.update(prefix("10.1.0.0", 16), u32(16));
    const longest = ["10.1.2.3", "10.2.2.3", "11.0.0.1"].map((address) => sources.lookup(prefix(address, 32))?.readUInt32LE() ?? null);
    const prefixes = await keysOf(sources);

    const settings = object.map("settings");
    settings.update(u32(3), u64(7));
    const array = [settings.lookup(u32(3))?.readUInt32LE() ?? null, settings.lookup(u32(4)) ?? null, (await keysOf(settings)).length];
    const refused = [await refusal(() => settings.update(u32(4), u64(1))), await refusal(() => settings.delete(u32(3)))];

    // Each CPU's four bytes lie in eight.
    const bytesOf = object.map("bytes_of");
    const value = Buffer.alloc(bytesOf.valueBytes);
    for (let at = 0; at < value.length / 8; at += 1) value.writeUInt32LE(at + 1, at * 8);
    bytesOf.update(u32(5), value);
    const read = (await readAll(bytesOf)).map(({ values }) => values);
    const isRight = (one: Buffer | undefined): boolean =>
      perCpuValues(one ?? value, 4).every((part, cpu) => part.length === 4 && part.readUInt32LE() === cpu + 1);
    const perCpu = [isRight(bytesOf.lookup(u32(5))), read.length === 1 && isRight(read[0])];
    object.close();
    return { longest, prefixes, array, refused, perCpu };
  },

  // Times are told and not judged.
  async manyElements() {
    const count = 100_000;
    const made = [
      bpf.createMap({ name: "many", type: "hash", keySize: 8, valueSize: 8, maxEntries: count }),
      bpf.createMap({ name: "counters", type: "per-cpu-hash", keySize: 8, valueSize: 8, maxEntries: count }),
      bpf.createMap({ name: "ranges", type: "lpm-trie", keySize: 8, valueSize: 8, maxEntries: count }),
    ];
    const results: unknown[] = [];
    const times: Record<string, number> = {};
    for (const map of made) {
      const elements = numbered(count, map.valueBytes);
      // A trie's keys begin with the length of the prefix.
      if (map.info.type === "lpm-trie")
        for (let at = 0; at < count; at += 1) {
          elements.keys.writeUInt32LE(32, at * 8);
          elements.keys.writeUInt32BE(at, at * 8 + 4);
        }
      let turns = 0;
      const timed = async <T>(what: string, run: () => Promise<T>): Promise<T> => {
        const start = performance.now();
        let isOver = false;
        const result = run().finally(() => (isOver = true));
        for (; !isOver; turns += 1) await nextTurn();
        times[`${map.info.name} ${what} ms`] = Math.round((performance.now() - start) * 10) / 10;
        return result;
      };
      const written = await timed("write", () => map.updateMany(elements));
      const again = await timed("write again", () => map.updateMany(elements));
      const batches = await timed("read", () => readAll(map));
      const seen = new Set(batches.flatMap((batch) => Array.from({ length: batch.count }, (_, at) => batch.keys.readBigUInt64LE(at * 8))));
      const memory = map.memoryBytes();
      times[`${map.info.name} kB`] = Math.round(memory / 1000);
      const deleted = await timed("delete", () => map.deleteMany(elements.keys));
      results.push({
        done: written.done,
        again: again.done,
        seen: seen.size,
        deleted,
        isWokenOften: turns >= 100,
        isMemoryReported: memory > count * 16,
      });
      map.close();
    }
    return { results, times };
  },
};

await runScenario(scenarios);
