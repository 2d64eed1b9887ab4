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
    expect(() => exec.open("id", [])).toThrow("unexpected open");
  });

  it("plays a kept child until it dies", async () => {
    const exec = createFakeExec([{ open: ["nft", "-i"], reply: (text) => (text === "quit\n" ? undefined : `re ${text}`) }]);
    const session = exec.open("nft", ["-i"]);
    session.write("one\ntwo\n");
    expect(await session.readUntil("one\n", 1)).toBe("re one\n");
    await expect(session.readUntil("three", 1)).rejects.toMatchObject({ code: "timed_out" });
    session.write("quit\n");
    expect(await session.readUntil("two\n", 1)).toBe("two\n");
    await expect(session.readUntil("x", 1)).rejects.toMatchObject({ code: "tool_failed" });
  });
});
