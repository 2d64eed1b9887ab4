import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { beforeAll, describe, expect, it } from "vitest";
import { onStage } from "../test-support/bpf-stage.ts";

const execute = (scenario: string): Promise<unknown> => onStage("bpf-maps-child.ts", scenario);

describe("maps of a real kernel", needs("root", "netns", "bpf"), () => {
  beforeAll(() => buildBpf("packages/host"));

  it("reads, writes and deletes one element, and says what was wrong", async () => {
    const element = "an element of a BPF map can't be dealt with";
    const map = "map services (hash, 16 entries)";
    expect(await execute("elements")).toEqual({
      found: ["0a0100011f900000", true],
      refused: [
        `[already_exists] ${element} (EEXIST): ${map}`,
        `[not_found] ${element} (ENOENT): ${map}`,
        `[invalid_object] a key of 4 bytes is given where a BPF map has 8: ${map}`,
        `[invalid_object] a value of 4 bytes is given where a BPF map has 8: ${map}`,
        `[invalid_object] a row of keys of 8 bytes is given where a BPF map has 16: ${map}`,
        `[invalid_object] a row of keys of 4 bytes is given where a BPF map has 8: ${map}`,
      ],
      deleted: [true, false],
      infos: [
        "bytes_of per-cpu-hash 4 4 16",
        "hits per-cpu-array 4 8 4",
        "origins lru-hash 8 8 16",
        "services hash 8 8 16",
        "settings array 4 8 4",
        "sources lpm-trie 8 4 16",
      ],
    });
  });

  it("says which map is full and how far it came; an LRU map never is", async () => {
    const more = "give it more entries, or let it have fewer";
    const full = `[limit_reached] a BPF map is full (E2BIG): map services (hash, 16 entries): ${more}`;
    expect(await execute("full")).toEqual({
      batches: [
        `16 ${full}`,
        "16 all",
        `16 [limit_reached] a BPF map is full (ENOSPC): map sources (lpm-trie, 16 entries): ${more}`,
        "2 [invalid_object] an index is beyond the end of an array: map settings (array, 2 entries)",
        "1000 all",
      ],
      one: full,
      deleted: 16,
      left: 0,
      forgets: true,
    });
  });

  it("knows tries, arrays, and values that each CPU has for itself", async () => {
    const settings = "map settings (array, 4 entries)";
    expect(await execute("kinds")).toEqual({
      longest: [16, 8, null],
      prefixes: ["080000000a000000", "100000000a010000"],
      array: [7, null, 4],
      refused: [
        `[invalid_object] an index is beyond the end of an array: ${settings}`,
        `[tool_failed] an element of a BPF map can't be dealt with (EINVAL): ${settings}`,
      ],
      perCpu: [true, true],
    });
  });

  it("writes, reads and deletes 100,000 elements while the event loop turns", async () => {
    const all = { done: 100_000, again: 100_000, seen: 100_000, deleted: 100_000, isWokenOften: true, isMemoryReported: true };
    expect(await execute("manyElements")).toMatchObject({ results: [all, all, all] });
  });
});
