import { ProxyError } from "@turnout/core";
import { describe, expect, test } from "vitest";
import { errorText } from "./command-line.ts";

describe("errorText", () => {
  const error = new ProxyError("timed_out", "late", { object: "x", cause: new Error("inner") });
  test("one line without -v, cause and stack with it", () => {
    expect(errorText("turnout", error, false)).toBe("turnout: [timed_out] late: x\n");
    expect(errorText("turnout", error, true)).toMatch(/^turnout: \[timed_out\] late: x\n.*at .*caused by: Error: inner\n/s);
  });

  test("a defect shows its stack always", () => {
    expect(errorText("turnout", new TypeError("oops"), false)).toMatch(/^turnout: TypeError: oops\n\s+at /);
  });
});
