import { ProxyError, type Counts } from "@turnout/core";
import { describe, expect, test } from "vitest";
import { toyRow, toyWorld } from "../../test-support/toys.ts";
import { CountReader } from "./count-reader.ts";
import { countMetrics, ServiceCounts } from "./service-counts.ts";

const ROWS = new Map(["cart", "till", "web"].map((name) => [`shop/${name}:http/TCP`, toyRow(name)]));
const ownerOf = (object: string): string | undefined => (object === "shared" ? undefined : `shop/${object.split(" ")[0] ?? ""}:http/TCP`);

function taking(...readings: readonly Readonly<Record<string, Counts>>[]): ServiceCounts {
  const counts = new ServiceCounts();
  for (const reading of readings) counts.take(new Map(Object.entries(reading)), ROWS, ownerOf, 5);
  return counts;
}

function sums(counts: ServiceCounts): unknown {
  return Object.fromEntries(counts.busiest(ROWS, 10).busiest.map(({ name, counts: of }) => [name.name, of]));
}

describe("what is counted for a row", () => {
  test.each<readonly [name: string, readings: readonly Readonly<Record<string, Counts>>[], expected: unknown]>([
    [
      "is what its objects counted",
      [{ "cart a": { connections: 3 }, "cart b": { connections: 4, rejects: 1 } }],
      { cart: { connections: 7, rejects: 1 } },
    ],
    ["grows with them", [{ "cart a": { connections: 3 } }, { "cart a": { connections: 5 } }], { cart: { connections: 5 } }],
    ["is not counted twice", [{ "cart a": { connections: 3 } }, { "cart a": { connections: 3 } }], { cart: { connections: 3 } }],
    [
      "never shrinks: what is smaller has begun anew",
      [{ "cart a": { connections: 9 } }, { "cart a": { connections: 2 } }],
      { cart: { connections: 11 } },
    ],
    ["outlives an object", [{ "cart a": { rejects: 9 } }, {}, { "cart a": { rejects: 2 } }], { cart: { rejects: 11 } }],
    ["has nothing of what nobody owns", [{ shared: { connections: 1 } }], {}],
    ["is left out where it is nothing", [{ "cart a": { connections: 0 } }], {}],
  ])("%s", (_name, readings, expected) => {
    expect(sums(taking(...readings))).toEqual(expected);
  });

  test("goes with the row", () => {
    const counts = taking({ "cart a": { connections: 3 }, "till a": { connections: 1 } });
    const rows = new Map([...ROWS].filter(([key]) => key !== "shop/cart:http/TCP"));
    counts.take(new Map([["cart a", { connections: 4 }]]), rows, ownerOf, 6);
    expect(sums(counts)).toEqual({ till: { connections: 1 } });
    expect(counts.busiest(rows, 1).readMs).toBe(6);
  });
});

test("metrics tell the busiest rows, so many and no more, and how many are left out", () => {
  const counts = taking({
    "cart a": { connections: 3, bytesIn: 10 },
    "till a": { dropsOutsideRanges: 5 },
    "web a": { rejects: 1, bytesOut: 1_000_000 },
  });
  const reported = countMetrics(counts.busiest(ROWS, 2)).map(({ name, labels, value }) => [
    name,
    labels?.["service"],
    value,
    labels?.["reason"] ?? labels?.["direction"],
  ]);
  expect(reported).toEqual([
    ["turnout_service_dropped_total", "till", 5, "source-ranges"],
    ["turnout_service_connections_total", "cart", 3, undefined],
    ["turnout_service_bytes_total", "cart", 10, "in"],
    ["turnout_service_ports_left_out", undefined, 1, undefined],
  ]);
});

describe("a reader", () => {
  const { signal } = new AbortController();
  const common = { rows: () => ROWS, ownersOf: (object: string) => new Set([ownerOf(object) ?? ""]), rowsMax: 10 };

  test("reads at most once in five seconds, however many ask", async () => {
    const world = toyWorld();
    let reads = 0;
    const backend = { counts: () => Promise.resolve(new Map([["cart a", { connections: ++reads }]])) };
    const reader = new CountReader({ ...common, ...world, backend });
    await Promise.all([reader.busiest(signal), reader.busiest(signal)]);
    await world.clock.advance(4_999);
    await reader.busiest(signal);
    expect(reads).toBe(1);
    await world.clock.advance(1);
    expect((await reader.busiest(signal))?.busiest[0]?.counts).toEqual({ connections: 2 });
  });

  test("takes a tenth of the time for reading, and keeps nobody waiting for longer than two seconds", async () => {
    const world = toyWorld();
    let reads = 0;
    const counts = async (): Promise<Map<string, Counts>> => {
      await world.clock.sleep(10_000, signal);
      return new Map([["cart a", { connections: ++reads }]]);
    };
    const reader = new CountReader({ ...common, ...world, backend: { counts } });
    const first = reader.busiest(signal);
    await world.clock.advance(2_000);
    expect((await first)?.busiest).toEqual([]);
    await world.clock.advance(8_000);
    expect((await reader.busiest(signal))?.busiest[0]?.counts).toEqual({ connections: 1 });
    await world.clock.advance(99_999);
    await reader.busiest(signal);
    await world.clock.advance(10_000);
    expect(reads).toBe(1);
  });

  test("tells nothing where nothing is counted, or nobody asked for it", async () => {
    const backend = { counts: () => Promise.resolve(new Map()) };
    expect(await new CountReader({ ...common, ...toyWorld(), backend: {} }).busiest(signal)).toBeUndefined();
    expect(await new CountReader({ ...common, ...toyWorld(), backend, rowsMax: 0 }).busiest(signal)).toBeUndefined();
  });

  test("says once that it can't read, and keeps what it has", async () => {
    const world = toyWorld();
    let isBroken = false;
    const counts = (): Promise<Map<string, Counts>> =>
      isBroken ? Promise.reject(new ProxyError("tool_failed", "no list")) : Promise.resolve(new Map([["cart a", { connections: 1 }]]));
    const reader = new CountReader({ ...common, ...world, backend: { counts } });
    await reader.busiest(signal);
    isBroken = true;
    for (let times = 0; times < 3; times++) {
      await world.clock.advance(5_000);
      expect((await reader.busiest(signal))?.busiest).toHaveLength(1);
    }
    expect(world.log.lines).toEqual([expect.stringContaining("can't be read error=[tool_failed] no list")]);
  });
});
