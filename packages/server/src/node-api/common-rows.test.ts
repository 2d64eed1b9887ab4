import { isEqual, type ServicePort } from "@turnout/core";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CommonRows } from "./common-rows.ts";

/** A row with two endpoints; `local` is where the one that runs on the node is, if one does. */
function row(key: string, { ready = true, local = -1 } = {}): ServicePort {
  const endpoints = [0, 1].map((at) => ({ ip: `10.1.0.${at}`, port: 80, isLocal: at === local, ready }));
  return { key, endpoints, cluster: [0, 1], local: local < 0 ? [] : [local] } as unknown as ServicePort;
}

const KEYS = ["a", "b", "c"] as const;
const NODES = 4;
const form = fc.record({ ready: fc.boolean(), local: fc.constantFrom(-1, -1, 0, 1) });
const step = fc.record({
  node: fc.nat(NODES - 1),
  key: fc.constantFrom(...KEYS),
  /** Undefined: it is deleted. */
  form: fc.option(form, { nil: undefined }),
});

describe("rows of many nodes", () => {
  test("are for each node what it was told, as a map of its own would have them", () => {
    const agree = (steps: readonly { node: number; key: string; form: { ready: boolean; local: number } | undefined }[]): void => {
      const common = new CommonRows();
      const nodes = Array.from({ length: NODES }, () => ({ rows: common.open(), truth: new Map<string, ServicePort>() }));
      for (const { node, key, form: reported } of steps) {
        const { rows, truth } = nodes[node]!;
        const before = truth.get(key);
        const next = reported === undefined ? undefined : row(key, reported);
        const changed = next === undefined ? rows.delete(key) : rows.set(next);
        expect(changed).toEqual(isEqual(before, next) ? undefined : (next ?? before));
        if (next === undefined) truth.delete(key);
        else truth.set(key, next);
      }
      for (const { rows, truth } of nodes) {
        expect(rows.size).toBe(truth.size);
        expect(new Map([...rows.values()].map((one) => [one.key, one]))).toEqual(truth);
        for (const key of KEYS) expect(rows.get(key)).toEqual(truth.get(key));
      }
      for (const { rows } of nodes) rows.close();
      expect([common.size, common.open().get("a")]).toEqual([0, undefined]);
    };
    expect(() => fc.assert(fc.property(fc.array(step, { maxLength: 60 }), agree), { numRuns: 200 })).not.toThrow();
  });

  test("are held once where they are equal, and let go with the last node", () => {
    const common = new CommonRows();
    const [one, other] = [common.open(), common.open()];
    for (const rows of [one, other]) for (const key of KEYS) rows.set(row(key));
    expect(common.size).toBe(3);
    expect(one.get("a")).toBe(other.get("a"));
    one.set(row("a", { ready: false }));
    expect([common.size, other.get("a")?.endpoints[0]?.ready]).toEqual([4, true]);
    other.set(row("a", { ready: false }));
    expect(common.size).toBe(3);
    one.close();
    one.close();
    expect([common.size, one.size, other.size]).toEqual([3, 0, 3]);
    other.close();
    expect(common.size).toBe(0);
  });

  test("with an endpoint on the node are its own, and share what is equal with the others'", () => {
    const common = new CommonRows();
    const [here, elsewhere] = [common.open(), common.open()];
    elsewhere.set(row("a"));
    here.set(row("a", { local: 1 }));
    expect(common.size).toBe(2);
    expect(here.get("a")?.endpoints[0]).toBe(elsewhere.get("a")?.endpoints[0]);
    expect(here.get("a")?.endpoints[1]).toMatchObject({ isLocal: true });
    expect(elsewhere.get("a")?.endpoints[1]).toMatchObject({ isLocal: false });
  });

  test("use the places of rows that are gone again", () => {
    const common = new CommonRows();
    const rows = common.open();
    for (let round = 0; round < 100; round++) {
      rows.set(row(`r${round}`));
      rows.delete(`r${round - 2}`);
    }
    expect([rows.size, common.size, common.indexes]).toEqual([2, 2, 3]);
  });
});
