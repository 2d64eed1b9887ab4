import { describe, expect, it } from "vitest";
import { applyChangeSet } from "../model/change-set.ts";
import type { ChangeSet, Destination, Endpoint, ServicePort } from "../model/rows.ts";
import { serviceKeyOf } from "../model/names.ts";
import { ServiceBound } from "./service-bound.ts";
import { createRandom } from "../testing/random.ts";
import { rawService, rawSlice } from "../testing/objects.ts";
import { rowsOf } from "../testing/view.ts";

const BOUND = 6;

/** The rows of a Service with so many ports and endpoints. */
function rows(name: string, ports: number, endpoints: number): readonly ServicePort[] {
  const numbers = Array.from({ length: ports }, (_, index) => index + 1);
  const service = rawService(name, { ports: numbers.map((port) => ({ name: `p${port}`, port })) });
  const addresses = Array.from({ length: endpoints }, (_, index) => ({ ip: `10.1.0.${index + 1}` }));
  const slice = rawSlice(name, addresses, { ports: numbers.map((port) => ({ name: `p${port}`, port: 8000 + port })) });
  return [...rowsOf([service, slice]).values()];
}

function changeSet(parts: Partial<ChangeSet>): ChangeSet {
  return { instance: "x", revision: 2, family: "IPv4", full: false, set: [], delete: [], triggersMs: [], ...parts };
}

function keys(all: readonly ServicePort[]): readonly string[] {
  return all.map(({ key }) => key);
}

function sizes({ set }: ChangeSet): readonly (readonly [string, number])[] {
  return set.map(({ key, endpoints }) => [key.slice(5), endpoints.length] as const).toSorted(([one], [other]) => (one < other ? -1 : 1));
}

describe("R-67 a Service that has too many endpoints", () => {
  it("has some of them in each port, is reported once, and has all again when they are fewer", () => {
    const reported: string[] = [];
    const bound = new ServiceBound({ entriesMax: BOUND, report: ({ object, what }) => void reported.push(`${object} ${what}`) });
    const all = rows("big", 3, 2);
    const other = rows("other", 1, BOUND);
    const full = changeSet({ full: true, set: [...all, ...other] });
    expect(bound.limit(full)).toBe(full);
    const more = rows("big", 3, 3)[0] as ServicePort;
    expect(sizes(bound.limit(changeSet({ set: [more] })))).toEqual([["big:p1/TCP", 2]]);
    const [issue] = bound.issues();
    expect(issue?.what).toBe("too many endpoints times addresses: 7, and 6 are allowed; 2 endpoints of each port are used");
    const most = rows("big", 3, 9)[0] as ServicePort;
    expect(sizes(bound.limit(changeSet({ set: [most] })))).toEqual([]);
    expect(reported).toEqual([`Service shop/big ${issue?.what}`]);
    const gone = all[2]?.key ?? "";
    expect(sizes(bound.limit(changeSet({ set: [more], delete: [gone] })))).toEqual([["big:p1/TCP", 3]]);
    expect([...bound.issues()]).toEqual([]);
    bound.limit(changeSet({ set: [most] }));
    expect(reported).toHaveLength(2);
    expect(sizes(bound.limit(changeSet({ full: true, set: rows("big", 9, 1) })))).toHaveLength(9);
  });

  it("passes on only rows that differ, and is reported at half a million entries whatever the backend takes", () => {
    const issues: unknown[] = [];
    const bound = new ServiceBound({ entriesMax: 1_000_000, report: (issue) => void issues.push(issue) });
    const [row] = rows("big", 1, 200) as [ServicePort];
    const wide = { ...row, destinations: new Array<Destination>(2_501).fill(row.destinations[0] as Destination) };
    const [passed] = bound.limit(changeSet({ full: true, set: [wide] })).set as [ServicePort];
    expect(passed.endpoints).toHaveLength(199);
    const what = "too many endpoints times addresses: 500200, and 500000 are allowed; 199 endpoints of each port are used";
    expect(issues).toEqual([{ object: "Service shop/big", what, hint: "use fewer ports or endpoints" }]);
    const unready = (index: number): ServicePort => ({
      ...wide,
      endpoints: wide.endpoints.with(index, { ...(wide.endpoints[index] as Endpoint), serving: false }),
    });
    const leftOut = wide.endpoints.findIndex((one) => !passed.endpoints.includes(one));
    expect(bound.limit(changeSet({ set: [unready(leftOut)] })).set).toEqual([]);
    expect(keys(bound.limit(changeSet({ set: [unready(leftOut === 0 ? 1 : 0)] })).set)).toEqual([row.key]);
    expect(keys(bound.limit(changeSet({ set: [wide] })).set)).toEqual([row.key]);
    expect(bound.limit(changeSet({ full: true, set: [wide] })).set).toEqual([passed]);
  });

  it("has those that follow from what it is, whatever it was before", () => {
    const random = createRandom(7);
    const upTo = (count: number): number => Math.floor(random() * count);
    const bound = new ServiceBound({ entriesMax: BOUND, report: () => undefined });
    let all: ReadonlyMap<string, ServicePort> = new Map();
    let held: ReadonlyMap<string, ServicePort> = new Map();
    for (let step = 0; step < 1_000; step++) {
      const name = `s${upTo(3)}`;
      const mine = [...all.keys()].filter((key) => serviceKeyOf(key) === `shop/${name}`);
      const set = rows(name, upTo(4), upTo(5)).filter(() => random() < 0.7);
      const set2 = keys(set);
      const gone = mine.filter((key) => !set2.includes(key) && random() < 0.5);
      const isFull = random() < 0.05;
      const changes = isFull ? changeSet({ full: true, set: [...set] }) : changeSet({ set, delete: gone });
      all = applyChangeSet(all, changes);
      held = applyChangeSet(held, bound.limit(changes));
      const fresh = new ServiceBound({ entriesMax: BOUND, report: () => undefined });
      expect(held).toEqual(applyChangeSet(new Map(), fresh.limit(changeSet({ full: true, set: [...all.values()] }))));
      for (const found of Map.groupBy(held.values(), ({ key }) => serviceKeyOf(key)).values())
        expect(found.reduce((sum, { endpoints }) => sum + endpoints.length, 0)).toBeLessThanOrEqual(BOUND);
    }
  });
});
