import { ProxyError } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { createFakeExec } from "./fake-exec.ts";

describe("createFakeExec", () => {
  it("plays its script", async () => {
    const exec = createFakeExec([
      { run: ["nft", "-f", "-"], input: "add table x\n", result: { code: 1, stderr: "no" } },
      { run: ["id"], error: new ProxyError("tool_missing", "no id") },
    ]);
    expect(await exec.run("nft", ["-f", "-"], { input: "add table x\n" })).toEqual({ code: 1, stdout: "", stderr: "no" });
    expect(() => exec.done()).toThrow("1 expected calls did not come");
    await expect(exec.run("id", [])).rejects.toMatchObject({ code: "tool_missing" });
    exec.done();
  });

  it.each([
    ["another program", "ip", ["-f", "-"], { input: "x" }],
    ["another argument", "nft", ["-f", "x"], { input: "x" }],
    ["an argument less", "nft", ["-f"], { input: "x" }],
    ["other input", "nft", ["-f", "-"], { input: "y" }],
    ["no input", "nft", ["-f", "-"], {}],
  ])("refuses %s", async (_, file, args, options) => {
    const exec = createFakeExec([{ run: ["nft", "-f", "-"], input: "x" }]);
    await expect(exec.run(file, args, options)).rejects.toThrow("unexpected call");
  });

  it("refuses input that was not expected, and calls after the end", async () => {
    const exec = createFakeExec([{ run: ["id"] }]);
    await expect(exec.run("id", [], { input: "" })).rejects.toThrow("unexpected call");
    await exec.run("id", []);
    await expect(exec.run("id", [])).rejects.toThrow("nothing more");
    await expect(exec.open("id", []).finish("")).rejects.toThrow("unexpected call");
  });

  it("plays what is started before its input is known", async () => {
    const exec = createFakeExec([{ run: ["nft", "-f", "-"], input: "x", result: { code: 1 } }]);
    const started = exec.open("nft", ["-f", "-"]);
    expect(() => exec.done()).toThrow("1 expected calls did not come");
    expect(await started.finish("x")).toEqual({ code: 1, stdout: "", stderr: "" });
    exec.done();
  });
});
