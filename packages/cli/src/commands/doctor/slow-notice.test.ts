import { TestClock } from "@turnout/core/testing";
import { expect, test } from "vitest";
import { slowNotice } from "./slow-notice.ts";

test("one line says which part takes long, and no line where none does", async () => {
  const [clock, reported] = [new TestClock(), [] as string[]];
  const slow = slowNotice(clock, (line) => void reported.push(line));
  const lasting = (what: string, ms: number): Promise<void> =>
    slow.during(what, async () => {
      await clock.advance(ms);
    });
  await lasting("a", 1_900);
  await lasting("b", 1_900);
  expect(reported).toEqual([]);
  await lasting("c", 2_100);
  await lasting("d", 9_000);
  expect(reported).toEqual(["turnout doctor: still reading c; where there are thousands of Services this takes some seconds\n"]);
});

test("what fails, fails", async () => {
  const slow = slowNotice(new TestClock(), () => expect.unreachable());
  await expect(slow.during("a", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
});
