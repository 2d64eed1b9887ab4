import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keepPlaces } from "./places.ts";

describe("keepPlaces", () => {
  it.each([
    ["moves the last entry into the gap that one left", "a c d", "a b c d", "a d c"],
    ["appends what is new", "a b c d", "a b d", "a b d c"],
    ["puts what is new into the place of what went", "a c d x", "a b c d", "a x c d"],
    ["puts an entry back where it was taken away", "a b c", "a - c", "a b c"],
    ["keeps the order of a list that has the same entries", "a b c", "c b a", "c b a"],
    ["leaves vacant places vacant", "- - a c", "- - a b c", "- - a c"],
    ["lays out anew where other places are vacant", "- - - - a b c", "- - a b", "- - - - a b c"],
    ["drops what is there twice", "a b c", "a a b", "a c b"],
  ])("%s", (_, wanted, held, placed) => {
    const [of, at, is] = [wanted, held, placed].map((text) => text.split(" ").map((entry) => (entry === "-" ? "" : entry)));
    expect(keepPlaces(of ?? [], at ?? [])).toEqual(is);
  });

  it("has the entries that are wanted, and writes at most two places for one that came or went", () => {
    const entry = fc.integer({ min: 0, max: 99 }).map(String);
    fc.assert(
      fc.property(fc.uniqueArray(entry, { minLength: 1, maxLength: 50 }), fc.nat(), (held, at) => {
        const without = held.toSpliced(at % held.length, 1);
        for (const [from, to] of [
          [held, without.toSorted()],
          [without, held.toSorted()],
        ] as const) {
          const placed = keepPlaces(to, from);
          expect(placed.toSorted()).toEqual(to);
          const longest = Math.max(placed.length, from.length);
          const written = Array.from({ length: longest }, (_, place) => place).filter((place) => placed[place] !== from[place]);
          expect(written.length).toBeLessThanOrEqual(2);
        }
      }),
    );
  });
});
