import { describe, expect, it } from "vitest";
import { HnsError, isHnsError, recordText, reported } from "./error.ts";
import type { HnsFailure } from "./error.ts";

describe("what HNS failed with", () => {
  it.each<[HnsFailure, string, readonly number[]]>([
    ["notFound", "not_found", [0x803b0001, 0x803b0002, 0x803b0008, 0x80070490]],
    ["exists", "already_exists", [0x803b0010, 0x803b0012, 0x803b0013, 0x800700b7]],
    ["inUse", "tool_failed", [0x803b002c]],
    ["badReference", "not_found", [0x803b001c, 0x803b000c]],
    ["down", "timed_out", [0x803b0020, 0x800706ba, 0x800706be]],
    ["denied", "permission_denied", [0x80070005]],
    ["unsupported", "host_unsupported", [0x80004001, 0x803b0015, 0x803b0016]],
    ["refused", "tool_failed", [0x803b001e, 0x803b0007]],
  ])("%s is %s", (failure, code, hresults) => {
    // As koffi gives them: signed.
    const errors = hresults.map((hresult) => new HnsError(hresult | 0, "why"));
    expect(errors.filter((error) => error.failure !== failure || !isHnsError(error, failure))).toEqual([]);
    for (const cause of errors)
      expect(reported(cause, "it can't be made", "endpoint 10.1.1.1")).toMatchObject({ code, object: "endpoint 10.1.1.1", cause });
  });

  it("is told in one line, and what else was thrown stays as it is", () => {
    const error = reported(new HnsError(0x803b0013, "The specified port already exists."), "HNS can't put it", "loadbalancer TCP *:30080");
    expect(String(error)).toMatch(
      /^ProxyError: \[already_exists\] HNS can't put it \(0x803b0013: The specified port already exists\.\): loadbalancer TCP \*:30080: find who/,
    );
    const defect = new TypeError("no");
    expect(reported(defect, "x", "y")).toBe(defect);
  });

  it.each([
    [undefined, ""],
    ["", ""],
    ['{"Success":false,"Error":"A Reference is required ","ErrorCode":2151350300}', "A Reference is required"],
    ['{"Success":false}', '{"Success":false}'],
  ])("reads the record %j", (record, text) => {
    expect(recordText(record)).toBe(text);
  });

  it("says of a record that is no JSON what it is", () => {
    expect(recordText("<html>")).toMatch(/^<html> \(no JSON: /);
  });
});
