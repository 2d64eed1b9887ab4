import { describe, expect, it } from "vitest";
import { applyChangeSet } from "../../model/change-set.ts";
import type { Content } from "../../contract/backend.ts";
import type { ChangeSet, ServicePort } from "../../model/rows.ts";
import { createRandom } from "../../testing/random.ts";
import { rawService } from "../../testing/objects.ts";
import { rowsOf } from "../../testing/view.ts";
import { NamespaceShares } from "./namespace-shares.ts";

const MAX = 12;
const CAPACITIES = [
  { name: "destinations", max: MAX, hint: "raise the option max-services", sizeOf: (row: ServicePort) => row.destinations.length },
];

/** The rows of a Service with so many ports, of one destination each. */
function rows(namespace: string, name: string, ports: number, createdMs = 0): readonly ServicePort[] {
  const numbers = Array.from({ length: ports }, (_, index) => index + 1);
  const service = rawService(name, { ports: numbers.map((port) => ({ name: `p${port}`, port })) }, { namespace });
  return [...rowsOf([service]).values()].map((row) => ({ ...row, createdMs }));
}

function changeSet(parts: Partial<ChangeSet>): ChangeSet {
  return { instance: "x", revision: 2, family: "IPv4", full: false, set: [], delete: [], triggersMs: [], ...parts };
}

function shares(reported: string[] = []): NamespaceShares {
  return new NamespaceShares({ capacities: () => CAPACITIES, report: ({ object }) => void reported.push(object) });
}

/** Three contents, of which rows of one Service, and of Services of one first letter, share some. */
function contentsOf({ key, name }: ServicePort): readonly Content[] {
  return [
    { key: `letter ${name.name.slice(0, 1)}`, size: 5 },
    { key: `service ${name.namespace}/${name.name}`, size: 3 },
    { key, size: 2 },
  ];
}

/** How many places rows take where equal contents are there once. */
function placesOf(all: Iterable<ServicePort>): number {
  const sizes = new Map([...all].flatMap(contentsOf).map(({ key, size }) => [key, size]));
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

/** Each row takes 10, of which it shares some. */
function sharing(reported: string[] = [], max = 60): NamespaceShares {
  const ranges = { name: "ranges", max, hint: "raise the option max-ranges", sizeOf: () => 10, contentsOf };
  return new NamespaceShares({ capacities: () => [...CAPACITIES, ranges], report: ({ object }) => void reported.push(object) });
}

/** How many rows each namespace has. */
function counts(held: ReadonlyMap<string, ServicePort>): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...Map.groupBy(held.values(), ({ name }) => name.namespace)].map(([namespace, all]) => [namespace, all.length]),
  );
}

describe("R-76 what a backend has a finite amount of", () => {
  it("is all for a namespace that is alone, and given back to others that want their share", () => {
    const reported: string[] = [];
    const of = shares(reported);
    let held: ReadonlyMap<string, ServicePort> = new Map();
    const change = (parts: Partial<ChangeSet>): Readonly<Record<string, number>> =>
      counts((held = applyChangeSet(held, of.limit(changeSet(parts)))));
    const first = changeSet({ full: true, set: rows("evil", "a", MAX) });
    expect(of.limit(first)).toBe(first);
    held = applyChangeSet(held, first);
    expect(change({ set: rows("evil", "b", 30, 1) })).toEqual({ evil: MAX });
    expect(reported).toEqual(["Service evil/b"]);
    expect(change({ set: rows("shop", "cart", 2) })).toEqual({ evil: 10, shop: 2 });
    expect(reported).toEqual(["Service evil/b", "Service evil/a"]);
    expect([...of.issues()].map(({ what }) => what)[1]).toBe(
      "its namespace has more than its share of the 12 destinations that this node has place for; 2 ports of this Service are not in force",
    );
    expect(change({ set: rows("bank", "till", 9) })).toEqual({ evil: 5, shop: 2, bank: 5 });
    const gone = rows("bank", "till", 9).map(({ key }) => key);
    expect(change({ delete: gone })).toEqual({ evil: 10, shop: 2 });
    expect(change({ delete: rows("evil", "b", 30).map(({ key }) => key) })).toEqual({ evil: 10, shop: 2 });
    expect(change({ delete: rows("shop", "cart", 2).map(({ key }) => key) })).toEqual({ evil: MAX });
    expect([...of.issues()]).toEqual([]);
  });

  it("holds nothing back that fits where equal contents are there once", () => {
    const reported: string[] = [];
    const of = sharing(reported);
    const all = changeSet({ full: true, set: [...rows("shop", "cart", 6), ...rows("bank", "c", 5)] });
    expect(of.limit(all)).toBe(all);
    expect(reported).toEqual([]);
  });

  it("counts equal contents once for each namespace where not all fit", () => {
    const reported: string[] = [];
    const of = sharing(reported, 37);
    const all = [...rows("shop", "cart", 2), ...rows("evil", "c", 3), ...rows("evil", "cc", 3, 1), ...rows("evil", "d", 3, 2)];
    const out = of.limit(changeSet({ full: true, set: all }));
    // 12 for shop's, and 25 for evil's: 5 + 3 + 6, then 3 + 6; d's 5 + 3 + 2 don't fit.
    expect(counts(new Map(out.set.map((row) => [row.key, row])))).toEqual({ shop: 2, evil: 6 });
    expect(reported).toEqual(["Service evil/d"]);
    expect(of.limit(changeSet({ delete: rows("evil", "cc", 3).map(({ key }) => key) })).set.map(({ name }) => name.name)).toEqual(["d", "d", "d"]); // prettier-ignore
  });

  it.each([
    ["alone", shares, Infinity, 2],
    ["by content", () => sharing([], 37), 37, MAX],
  ])("is shared by what is wanted %s, whatever was wanted before, and never exceeded", (_by, made, places, unused) => {
    const random = createRandom(11);
    const upTo = (count: number): number => Math.floor(random() * count);
    const of = made();
    let all: ReadonlyMap<string, ServicePort> = new Map();
    let held: ReadonlyMap<string, ServicePort> = new Map();
    for (let step = 0; step < 1_000; step++) {
      const number = upTo(3);
      const set = rows(`n${upTo(3)}`, `s${number}`, upTo(9), (2 * number) % 3);
      const gone = [...all.keys()].filter((key) => random() < 0.2 && !set.some((row) => row.key === key));
      const changes = random() < 0.05 ? changeSet({ full: true, set }) : changeSet({ set, delete: gone });
      all = applyChangeSet(all, changes);
      held = applyChangeSet(held, of.limit(changes));
      expect(held).toEqual(applyChangeSet(new Map(), made().limit(changeSet({ full: true, set: [...all.values()] }))));
      // A level is a whole number: of three namespaces two elements may stay unused.
      expect(held.size).toBeLessThanOrEqual(MAX);
      expect(placesOf(held.values())).toBeLessThanOrEqual(places);
      expect(held.size).toBeGreaterThanOrEqual(Math.min(MAX, all.size) - unused);
    }
  });
});
