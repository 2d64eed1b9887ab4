import { describe, expect, it } from "vitest";
import { parseJSON } from "./json.ts";

function nested(depth: number, open = "[", close = "]"): string {
  return open.repeat(depth) + close.repeat(depth);
}

describe("parseJSON", () => {
  it("is JSON.parse for what is nested up to 64 levels", () => {
    for (const text of [
      nested(64),
      `{"a":${nested(63)}}`,
      JSON.stringify("[".repeat(99)),
      JSON.stringify({ a: '\\"[[[', b: "{".repeat(99) }),
      " 7 ",
    ])
      expect(parseJSON(text)).toEqual(JSON.parse(text));
    expect(() => parseJSON("[".repeat(500_000))).toThrow(SyntaxError);
  });

  it.each([
    ["lists", nested(500_000)],
    ["objects", `{"a":`.repeat(500_000) + "1" + "}".repeat(500_000)],
    ["objects in a field of this name", `{"__proto__":`.repeat(5_000) + "1" + "}".repeat(5_000)],
    ["beside what is not", `[[1,2],${nested(5_000)}]`],
  ])("cuts off deeper levels, of %s", (_name, text) => {
    const written = JSON.stringify(parseJSON(text));
    expect(written).toContain('"nested too deeply"');
    expect(written.length).toBeLessThan(2_000);
  });
});
