import { describe, expect, it } from "vitest";
import { applyChangeSet } from "../model/change-set.ts";
import type { ChangeSet, ServicePort } from "../model/rows.ts";
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

describe("R-67 a Service that is too large", () => {
  it("is left out as a whole, told once, and comes back as a whole", () => {
    const reported: string[] = [];
    const bound = new ServiceBound({ entriesMax: BOUND, report: ({ object }) => void reported.push(object) });
    const [first, second, third] = rows("big", 3, 2) as [ServicePort, ServicePort, ServicePort];
    const other = rows("other", 1, BOUND);
    const full = changeSet({ full: true, set: [first, second, third, ...other] });
    expect(bound.limit(full)).toBe(full);
    const [more] = rows("big", 3, 3) as [ServicePort];
    const left = bound.limit(changeSet({ set: [more] }));
    expect({ set: left.set, gone: left.delete.toSorted() }).toEqual({ set: [], gone: keys([first, second, third]) });
    expect(bound.limit(changeSet({ set: [more] })).set).toEqual([]);
    expect(bound.limit({ ...full, set: [more, second, third, ...other] }).set).toEqual(other);
    expect(reported).toEqual(["Service shop/big"]);
    expect(keys(bound.limit(changeSet({ delete: [third.key] })).set).toSorted()).toEqual(keys([more, second]));
    expect(bound.limit(changeSet({ set: [third] })).delete.toSorted()).toEqual(keys([first, second, third]));
    expect(reported).toEqual(["Service shop/big", "Service shop/big"]);
  });

  it("is left out by what it is, whatever it was before", () => {
    const random = createRandom(7);
    const upTo = (count: number): number => Math.floor(random() * count);
    const bound = new ServiceBound({ entriesMax: BOUND, report: () => undefined });
    let all: ReadonlyMap<string, ServicePort> = new Map();
    let held: ReadonlyMap<string, ServicePort> = new Map();
    for (let step = 0; step < 2_000; step++) {
      const name = `s${upTo(3)}`;
      const mine = [...all.keys()].filter((key) => serviceKeyOf(key) === `shop/${name}`);
      const set = rows(name, upTo(4), upTo(5)).filter(() => random() < 0.7);
      const set2 = keys(set);
      const gone = mine.filter((key) => !set2.includes(key) && random() < 0.5);
      const isFull = random() < 0.05;
      const changes = isFull ? changeSet({ full: true, set: [...set] }) : changeSet({ set, delete: gone });
      all = applyChangeSet(all, changes);
      held = applyChangeSet(held, bound.limit(changes));
      const sizes = new Map<string, number>();
      for (const { key, endpoints, destinations } of all.values()) {
        const service = serviceKeyOf(key);
        sizes.set(service, (sizes.get(service) ?? 0) + endpoints.length * destinations.length);
      }
      const fit = [...all].filter(([key]) => (sizes.get(serviceKeyOf(key)) ?? 0) <= BOUND);
      expect(held).toEqual(new Map(fit));
    }
  });
});
