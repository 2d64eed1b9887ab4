import type { ServicePort } from "@turnout/core/backend";
import { expect, it } from "vitest";
import { STRUCTS } from "./bytes/layout.ts";
import { rowId } from "./names.ts";
import { rowCounts } from "./metrics.ts";
import { stateOf } from "./test-support/states.ts";

function rowNamed(name: string): ServicePort {
  const [row] = stateOf([{ name, number: 1, local: 1 }], "IPv4").rows.values();
  if (row === undefined) throw new Error("there is a row");
  return row;
}

/** Of two CPUs; the second counts one more of everything. */
function counted(connections: number, rejects: number, outside: number): Buffer {
  const { bytes, fields } = STRUCTS.counters;
  const value = Buffer.alloc(2 * bytes);
  for (const cpu of [0, 1]) {
    value.writeBigUInt64LE(BigInt(connections + (connections > 0 ? cpu : 0)), cpu * bytes + fields.connections[0]);
    value.writeBigUInt64LE(BigInt(rejects + (rejects > 0 ? cpu : 0)), cpu * bytes + fields.rejects[0]);
    value.writeBigUInt64LE(BigInt(outside + (outside > 0 ? cpu : 0)), cpu * bytes + fields.outside[0]);
  }
  return value;
}

it("tells what all CPUs counted of the rows that are asked for, and nothing of what never happened", () => {
  const [cart, quiet, gone, other] = ["cart", "quiet", "gone", "other"].map(rowNamed) as [
    ServicePort,
    ServicePort,
    ServicePort,
    ServicePort,
  ];
  const values = new Map([
    [rowId(cart.key, "IPv4"), counted(5, 2, 1)],
    [rowId(quiet.key, "IPv4"), counted(0, 0, 0)],
    [rowId(gone.key, "IPv4"), counted(7, 0, 0)],
  ]);
  const asked: string[] = [];
  const counters = {
    info: {
      id: 1,
      name: "counters",
      type: "per-cpu-hash",
      keySize: 8,
      valueSize: STRUCTS.counters.bytes,
      maxEntries: 9,
      flags: 0,
    } as const,
    lookup(key: Uint8Array): Buffer | undefined {
      asked.push(Buffer.from(key).toString("hex"));
      return values.get(Buffer.from(key).toString("hex"));
    },
  };
  const ids = [cart, quiet, other].map(({ key }) => rowId(key, "IPv4"));
  expect([...rowCounts(counters, ids)]).toEqual([
    [`counter ${rowId(cart.key, "IPv4")}`, { connections: 11, rejects: 5, dropsOutsideRanges: 3 }],
  ]);
  expect(asked).toEqual(ids);
});
