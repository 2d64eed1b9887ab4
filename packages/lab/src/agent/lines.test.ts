import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { callLines, eachLine, serveLines } from "./lines.ts";

function conversation() {
  const questions = new PassThrough();
  const answers = new PassThrough();
  const served = serveLines(questions, answers, {
    double: async (value: number) => value * 2,
    late: () => new Promise((resolve) => setImmediate(resolve, "late")),
    fail: async () => Promise.reject(new Error("no such thing")),
  });
  return { questions, answers, served, caller: callLines("peer", answers, questions) };
}

describe("lines", () => {
  it("are put together from chunks", () => {
    const stream = new PassThrough();
    const lines: string[] = [];
    eachLine(stream, (line) => lines.push(line));
    for (const chunk of ["a", "b\nc\n\nd", "e"]) stream.write(chunk);
    stream.end();
    return new Promise<void>((resolve) => stream.on("end", resolve)).then(() => expect(lines).toEqual(["ab", "c", ""]));
  });

  it("carry answers to the question they belong to, whatever their order", async () => {
    const { caller } = conversation();
    expect(await Promise.all([caller.ask("late", 0), caller.ask("double", 21)])).toEqual(["late", 42]);
  });

  it("carry failures with what went wrong and who said so", async () => {
    const { caller } = conversation();
    await expect(caller.ask("fail", 0)).rejects.toThrow("[tool_failed] no such thing: peer");
    await expect(caller.ask("nonsense", 0)).rejects.toThrow("no call nonsense");
  });

  it("fail open and later questions when the other end goes", async () => {
    const { caller, answers } = conversation();
    answers.pause();
    const open = caller.ask("double", 1);
    answers.destroy();
    await expect(open).rejects.toThrow("agent is gone: peer");
    await expect(caller.ask("double", 1)).rejects.toThrow("agent is gone: peer");
  });

  it("end serving when the questions end", async () => {
    const { questions, served } = conversation();
    questions.end();
    await expect(served).resolves.toBeUndefined();
  });
});
