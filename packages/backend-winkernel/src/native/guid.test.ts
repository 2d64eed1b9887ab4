import { describe, expect, it } from "vitest";
import { guidBytes, NO_GUID } from "./guid.ts";

describe("a GUID as C has it", () => {
  it.each([
    ["as HNS enumerates it", "00112233-4455-6677-8899-aabbccddeeff"],
    ["in braces and capitals", "{00112233-4455-6677-8899-AABBCCDDEEFF}"],
  ])("has its first three groups as little-endian numbers: %s", (_, text) => {
    expect(guidBytes(text).toString("hex")).toBe("33221100554477668899aabbccddeeff");
  });

  it("of zeros leaves the choice to HNS", () => {
    expect(guidBytes(NO_GUID)).toEqual(Buffer.alloc(16));
  });

  it.each(["", "0011", "00112233-4455-6677-8899-aabbccddeefg", "00112233-4455-6677-8899-aabbccddeeff0"])('"%s" is none', (text) => {
    expect(() => guidBytes(text)).toThrow(RangeError);
  });
});
