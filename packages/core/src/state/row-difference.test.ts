import { describe, expect, it } from "vitest";
import type { ServicePort } from "../model/rows.ts";
import { rawService } from "../testing/objects.ts";
import { rowsOf } from "../testing/view.ts";
import { RowDifference } from "./row-difference.ts";

const [a, b, c] = ["a", "b", "c"].map((name) => [...rowsOf([rawService(name)]).values()][0]) as [ServicePort, ServicePort, ServicePort];

describe("the difference of rows", () => {
  it("rows that are equal but not the same object are no difference", () => {
    const difference = new RowDifference();
    expect(difference.add([a, b], [structuredClone(a), c])).toBe(true);
    expect([difference.set, difference.delete]).toEqual([[c], [b.key]]);
    expect(difference.add([a], [structuredClone(a)])).toBe(false);
    expect([difference.set, difference.delete]).toEqual([[c], [b.key]]);
  });

  it("rows whose past is known by its keys alone are all set, and what they don't replace is deleted", () => {
    const difference = new RowDifference();
    expect(difference.replace([a.key, b.key], [b, c])).toBe(true);
    expect([difference.set, difference.delete]).toEqual([[b, c], [a.key]]);
  });
});
