import { expect, test } from "vitest";
import { ToyClock } from "../../test-support/toys.ts";
import { fileChanged } from "./file-change.ts";

test("another text is a change, a missing file is not", async () => {
  const clock = new ToyClock();
  let text: string | undefined = "a";
  let result: boolean | undefined;
  void fileChanged({ path: "c", text: "a" }, () => Promise.resolve(text), clock, new AbortController().signal).then(
    (value) => (result = value),
  );
  await clock.advance(2_000);
  text = undefined;
  await clock.advance(2_000);
  expect(result).toBeUndefined();
  text = "b";
  await clock.advance(2_000);
  expect(result).toBe(true);
});

test("an end comes first", async () => {
  const stop = new AbortController();
  const watching = fileChanged({ path: "c", text: "a" }, () => Promise.resolve("b"), new ToyClock(), stop.signal);
  stop.abort();
  expect(await watching).toBe(false);
});
