import koffi from "koffi";
import { describe, expect, it } from "vitest";
import { declareHnsCalls, loadHnsCalls } from "./libraries.ts";

describe("the libraries of Windows", () => {
  it("are not looked for elsewhere", () => {
    expect(() => loadHnsCalls({ platform: "linux", systemRoot: "" })).toThrow(/^\[tool_missing\] no Host Network Service can be asked/);
  });

  it("are loaded by their full path, and the feature of Windows is named where they are not there", () => {
    const missing = (): unknown => declareHnsCalls(koffi, "C:\\Windows");
    expect(missing).toThrow("C:\\Windows\\System32\\computenetwork.dll could not be loaded");
    expect(missing).toThrow(/^\[tool_missing\] .*: install the feature Containers of Windows/);
  });
});
