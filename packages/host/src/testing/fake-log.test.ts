import { expect, it } from "vitest";
import { createFakeLog } from "./fake-log.ts";

it("keeps the last thousand lines of a log", () => {
  const log = createFakeLog();
  for (let number = 0; number <= 1_000; number++) log.info("hello", { number });
  log.warn("end");
  expect(log.lines).toHaveLength(1_000);
  expect([log.lines[0], log.lines.at(-1)]).toEqual(['info hello {"number":2}', "warn end"]);
});
