import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isEqual, withEqual } from "./equal.ts";

describe("equality of plain data", () => {
  it.each([
    ["numbers", 1, 1, true],
    ["different numbers", 1, 2, false],
    ["a number and its text", 1, "1", false],
    ["null and undefined", null, undefined, false],
    ["null and an object", null, {}, false],
    ["false and absent", { a: false }, {}, false],
    ["absent and undefined", { a: undefined }, {}, true],
    ["undefined and absent, the other way", {}, { a: undefined }, true],
    ["fields in another order", { a: 1, b: 2 }, { b: 2, a: 1 }, true],
    ["one field more on the left", { a: 1, b: 2 }, { a: 1 }, false],
    ["one field more on the right", { a: 1 }, { a: 1, b: 2 }, false],
    ["lists", [1, [2]], [1, [2]], true],
    ["lists in another order", [1, 2], [2, 1], false],
    ["a longer list", [1], [1, 2], false],
    ["a list and an object with its fields", [1], { 0: 1 }, false],
    ["an object and a list", {}, [], false],
    ["deep", { a: [{ b: { c: 1 } }] }, { a: [{ b: { c: 2 } }] }, false],
  ])("%s", (_name, a, b, expected) => {
    expect(isEqual(a, b)).toBe(expected);
    expect(isEqual(b, a)).toBe(expected);
  });

  it("a copy is equal, and agrees with the written form", () => {
    const plain = fc.jsonValue();
    fc.assert(
      fc.property(plain, plain, (a, b) => {
        expect(isEqual(a, structuredClone(a))).toBe(true);
        const sort = (value: unknown): string =>
          JSON.stringify(value, (_key, inner: unknown) =>
            isObject(inner) ? Object.fromEntries(Object.entries(inner).toSorted(([x], [y]) => (x < y ? -1 : 1))) : inner,
          );
        expect(isEqual(a, b)).toBe(sort(a) === sort(b));
      }),
    );
  });
});

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

describe("what is taken over where it is equal", () => {
  const before = { name: "a", list: [1, 2], part: { x: 1 }, gone: undefined as number | undefined };

  it("is the whole", () => expect(withEqual(before, { name: "a", list: [1, 2], part: { x: 1 }, gone: undefined })).toBe(before));

  it("or its fields, one by one", () => {
    const made = { ...before, list: [1, 2], part: { x: 2 } };
    const after = withEqual(before, made);
    expect(after).toBe(made);
    expect(after).toEqual({ ...before, part: { x: 2 } });
    expect(after.list).toBe(before.list);
    expect(after.part).not.toBe(before.part);
  });

  it.each([
    ["a field more", { a: 1 }, { a: 1, b: 2 }],
    ["a field less", { a: 1, b: 2 }, { a: 1 }],
  ])("is not the whole with %s", (_name, one: object, other: object) => {
    const kept = { ...other };
    expect(withEqual(one, other)).toBe(other);
    expect(other).toEqual(kept);
  });

  it("is nothing without anything before", () => expect(withEqual(undefined, before)).toBe(before));
});
