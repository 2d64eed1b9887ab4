import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { bitsOf, namesOf, parseCapabilities } from "./linux-capabilities.ts";

test("names and bits are the kernel's", () => {
  expect(bitsOf(["CAP_CHOWN"])).toBe(1n);
  expect(bitsOf(["CAP_NET_ADMIN", "CAP_NET_RAW"])).toBe(0x3000n);
  expect(bitsOf(["CAP_SYS_ADMIN", "CAP_BPF"])).toBe((1n << 21n) | (1n << 39n));
  expect(bitsOf(["CAP_CHECKPOINT_RESTORE"])).toBe(1n << 40n);
  expect(bitsOf(["CAP_FUTURE"])).toBe(0n);
  expect(namesOf(0x3001n)).toEqual(["CAP_CHOWN", "CAP_NET_ADMIN", "CAP_NET_RAW"]);
  expect(namesOf(1n << 63n)).toEqual(["CAP_63"]);
  expect(namesOf(0n)).toEqual([]);
});

test("a thread's status is read", () => {
  const status =
    "Name:\tnode\nCapInh:\t0000000000000001\nCapPrm:\t0000000000003000\nCapEff:\t0000000000001000\nCapBnd:\t000001ffffffffff\n";
  expect(parseCapabilities(status)).toEqual({ effective: 0x1000n, permitted: 0x3000n, inheritable: 1n, bounding: (1n << 41n) - 1n });
  expect(parseCapabilities("")).toEqual({ effective: 0n, permitted: 0n, inheritable: 0n, bounding: 0n });
  expect(parseCapabilities(readFileSync("/proc/self/status", "utf8")).bounding >= 0n).toBe(true);
});
