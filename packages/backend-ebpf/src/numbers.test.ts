import type { ServicePort } from "@turnout/core/backend";
import { expect, it } from "vitest";
import { STRUCTS } from "./layout.ts";
import { rowId } from "./names.ts";
import { RowNames, rowMetrics } from "./numbers.ts";
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

it("tells what all CPUs counted of the rows that are known, and nothing of what never happened", () => {
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
  const names = new RowNames();
  for (const row of [cart, quiet, gone, other]) names.learn(row);
  names.forget(rowId(gone.key, "IPv4"));
  const labels = { namespace: "shop", service: "cart", port: "main", protocol: "TCP" };
  expect(rowMetrics(counters, names).map(({ name, labels: of, value }) => [name, of, value])).toEqual([
    ["turnout_ebpf_connections_total", labels, 11],
    ["turnout_ebpf_rejected_total", { ...labels, reason: "no-endpoints" }, 5],
    ["turnout_ebpf_dropped_total", { ...labels, reason: "source-ranges" }, 3],
  ]);
  expect(asked).toEqual([cart, quiet, other].map(({ key }) => rowId(key, "IPv4")));
});
