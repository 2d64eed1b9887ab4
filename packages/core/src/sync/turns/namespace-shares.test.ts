import { describe, expect, it } from "vitest";
import { applyChangeSet } from "../../model/change-set.ts";
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

  it("is shared by what is wanted, whatever was wanted before, and never exceeded", () => {
    const random = createRandom(11);
    const upTo = (count: number): number => Math.floor(random() * count);
    const of = shares();
    let all: ReadonlyMap<string, ServicePort> = new Map();
    let held: ReadonlyMap<string, ServicePort> = new Map();
    for (let step = 0; step < 1_000; step++) {
      const number = upTo(3);
      const set = rows(`n${upTo(3)}`, `s${number}`, upTo(9), (2 * number) % 3);
      const gone = [...all.keys()].filter((key) => random() < 0.2 && !set.some((row) => row.key === key));
      const changes = random() < 0.05 ? changeSet({ full: true, set }) : changeSet({ set, delete: gone });
      all = applyChangeSet(all, changes);
      held = applyChangeSet(held, of.limit(changes));
      expect(held).toEqual(applyChangeSet(new Map(), shares().limit(changeSet({ full: true, set: [...all.values()] }))));
      // A level is a whole number: of three namespaces two elements may stay unused.
      expect(held.size).toBeLessThanOrEqual(MAX);
      expect(held.size).toBeGreaterThanOrEqual(Math.min(MAX, all.size) - 2);
    }
  });
});
