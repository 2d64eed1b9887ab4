import { errno } from "../../netlink/errno.ts";
import { describe, expect, it } from "vitest";
import { elementError } from "../errors.ts";
import { readLinkInfo, readMapInfo } from "../info.ts";
import type { MapInfo } from "../info.ts";
import { layoutDifference } from "./map-layout.ts";
import { isPerCpu, perCpuValues, sumCounter, valueBytes } from "./per-cpu.ts";

const MAP: MapInfo = { id: 7, name: "services", type: "hash", keySize: 8, valueSize: 12, maxEntries: 100, flags: 0 };

describe("values of each CPU", () => {
  it.each([
    ["hash", 12, 12],
    ["per-cpu-array", 12, 64],
    ["per-cpu-hash", 8, 32],
    ["lru-per-cpu-hash", 1, 32],
  ] as const)("%s of %i bytes takes %i for four CPUs", (type, valueSize, bytes) => {
    expect(valueBytes({ type, valueSize }, 4)).toBe(bytes);
    expect(isPerCpu(type)).toBe(type !== "hash");
  });

  it("are taken apart and added up", () => {
    const value = Buffer.alloc(48);
    value.writeBigUInt64LE(5n, 0);
    value.writeUInt32LE(9, 8);
    value.writeBigUInt64LE(1n << 40n, 24 - 8);
    const values = perCpuValues(value, 12);
    expect(values.map((one) => one.length)).toEqual([12, 12, 12]);
    expect(values[0]?.readUInt32LE(8)).toBe(9);
    expect(sumCounter(value, 12)).toBe(5n + (1n << 40n));
    expect(() => sumCounter(value, 12, 8)).toThrow("a counter of 8 bytes lies in the value");
  });
});

describe("what is wrong with an element", () => {
  it.each([
    ["E2BIG", "hash", "limit_reached"],
    ["ENOSPC", "lpm-trie", "limit_reached"],
    ["ENOMEM", "hash", "limit_reached"],
    ["E2BIG", "per-cpu-array", "invalid_object"],
    ["EEXIST", "hash", "already_exists"],
    ["ENOENT", "hash", "not_found"],
    ["EPERM", "hash", "permission_denied"],
    ["EINVAL", "hash", "tool_failed"],
  ] as const)("%s of a %s: %s", (name, type, code) => {
    expect(elementError({ ...MAP, type }, -errno(name))).toMatchObject({ code, object: `map services (${type}, 100 entries)` });
  });

  it("an operation that a map doesn't have is the host's lack", () => {
    expect(elementError(MAP, -524).message).toBe(
      "[host_unsupported] an element of a BPF map can't be dealt with (ENOTSUPP): map services (hash, 100 entries)",
    );
  });
});

describe("what the kernel tells", () => {
  it("of a map of a type that nobody here knows", () => {
    const bytes = Buffer.alloc(512);
    for (const [at, value] of [27, 3, 4, 8, 4096, 1].entries()) bytes.writeUInt32LE(value, at * 4);
    bytes.write("events", 24);
    expect(readMapInfo(bytes)).toEqual({ id: 3, name: "events", type: "type 27", keySize: 4, valueSize: 8, maxEntries: 4096, flags: 1 });
  });

  it("of a link that is none of ours", () => {
    const bytes = Buffer.alloc(512);
    for (const [at, value] of [6, 3, 4].entries()) bytes.writeUInt32LE(value, at * 4);
    expect(readLinkInfo(bytes)).toEqual({ id: 3, programId: 4, kind: "other", type: 6 });
  });
});

it("says in what two layouts differ", () => {
  const layout = { type: 1, keySize: 8, valueSize: 8, maxEntries: 16, flags: 0 };
  expect(layoutDifference(layout, layout)).toBeUndefined();
  expect(layoutDifference(layout, { ...layout, keySize: 12, flags: 1 })).toBe("keySize 8, wanted 12; flags 0, wanted 1");
});
