import { describe, expect, it } from "vitest";
import { MarkerBuffer } from "./marker-buffer.ts";

describe("MarkerBuffer", () => {
  const cases: readonly (readonly [name: string, pieces: readonly string[], marker: string, taken: string | undefined, rest: string])[] = [
    ["nothing", [], "END", undefined, ""],
    ["no marker", ["abc"], "END", undefined, "abc"],
    ["marker in one piece", ["abENDcd"], "END", "abEND", "cd"],
    ["marker cut in two", ["abE", "NDcd"], "END", "abEND", "cd"],
    ["marker a letter a piece", ["E", "N", "D"], "END", "END", ""],
    ["the first of two", ["aENDbEND"], "END", "aEND", "bEND"],
    ["a false start", ["EEN", "D"], "END", "EEND", ""],
    ["one letter", ["ab", "c\n"], "\n", "abc\n", ""],
  ];
  it.each(cases)("%s", (_, pieces, marker, taken, rest) => {
    const buffer = new MarkerBuffer();
    let found: string | undefined;
    for (const piece of pieces) {
      buffer.push(piece);
      found ??= buffer.extract(marker);
    }
    expect(found).toBe(taken);
    expect(buffer.size).toBe(rest.length);
    expect(buffer.extractAll()).toBe(rest);
    expect(buffer.size).toBe(0);
  });

  it("finds a second marker in what was searched for the first", () => {
    const buffer = new MarkerBuffer();
    buffer.push("one two");
    expect(buffer.extract("three")).toBeUndefined();
    expect(buffer.extract("one")).toBe("one");
    expect(buffer.extract("two")).toBe(" two");
  });
});
