import { describe, expect, it } from "vitest";
import { errno } from "../../netlink/errno.ts";
import { stubLibbpf } from "../../test-support/stub-libbpf.ts";
import type { MapInfo } from "../info.ts";
import type { Libbpf } from "../libbpf-calls.ts";
import { deleteInBatches, ElementSpace, readInBatches, updateInBatches } from "./map-batches.ts";
import type { BatchTarget, Elements } from "./map-batches.ts";

const INFO: MapInfo = { id: 1, name: "m", type: "hash", keySize: 4, valueSize: 2, maxEntries: 3, flags: 0 };

function target(calls: Partial<Libbpf>): BatchTarget {
  return { lib: stubLibbpf(calls), use: (call) => call(5), info: INFO, valueBytes: 2 };
}

function elements(count: number): Elements {
  const keys = Buffer.alloc(count * 4);
  for (let at = 0; at < count; at += 1) keys.writeUInt32LE(at, at * 4);
  return { count, keys, values: Buffer.alloc(count * 2) };
}

describe("writing", () => {
  it("takes a call that left the number alone for one that did nothing", async () => {
    const updateBatch: Libbpf["updateBatch"] = async () => -errno("EPERM");
    expect(await updateInBatches(target({ updateBatch }), elements(7))).toMatchObject({ done: 0, refused: { code: "permission_denied" } });
  });

  it("fails where the kernel refuses to delete", async () => {
    const deleteBatch: Libbpf["deleteBatch"] = async () => -errno("EINVAL");
    await expect(deleteInBatches(target({ deleteBatch }), elements(6).keys)).rejects.toThrow("[tool_failed]");
  });
});

describe("reading", () => {
  const read = async (lookupBatch: Libbpf["lookupBatch"]): Promise<readonly (readonly [count: number, bytes: number])[]> => {
    const batches: (readonly [number, number])[] = [];
    for await (const { count, keys, values } of readInBatches(target({ lookupBatch }))) batches.push([count, keys.length + values.length]);
    return batches;
  };

  it("asks again with more room where one bucket is too full, from the same place", async () => {
    const asked: (readonly [count: number, from: number | undefined])[] = [];
    const batches = await read(async (_, from, to, _keys, _values, count) => {
      asked.push([count[0] ?? 0, from?.[0]]);
      to[0] = asked.length;
      if (asked.length === 2) return -errno("ENOSPC");
      count.set([asked.length === 1 ? 3 : asked.length === 3 ? 5 : 0]);
      return asked.length === 4 ? -errno("ENOENT") : 0;
    });
    expect(asked).toEqual([
      [3, undefined],
      [3, 1],
      [6, 1],
      [6, 3],
    ]);
    expect(batches).toEqual([
      [3, 18],
      [5, 30],
    ]);
  });

  it("takes the same memory for each batch where it is given a room", async () => {
    const space = new ElementSpace();
    const given = new Set<ArrayBufferLike>();
    const lookupBatch: Libbpf["lookupBatch"] = async (_fd, from, _to, keys, values, count) => {
      for (const { buffer } of [keys, values]) given.add(buffer);
      count.set([3]);
      return from === undefined ? 0 : -errno("ENOENT");
    };
    for (let times = 0; times < 2; times += 1)
      for await (const { count, keys, values } of readInBatches(target({ lookupBatch }), space))
        expect([count, keys.length, values.length]).toEqual([3, 12, 6]);
    expect(given.size).toBe(2);
  });

  it("gives what comes with the end, and throws what isn't an end", async () => {
    const last: Libbpf["lookupBatch"] = async (_fd, _from, _to, _keys, _values, count) => {
      count.set([2]);
      return -errno("ENOENT");
    };
    expect(await read(last)).toEqual([[2, 12]]);
    await expect(read(async () => -errno("EINTR"))).rejects.toMatchObject({ code: "tool_failed", retryable: true });
  });
});
