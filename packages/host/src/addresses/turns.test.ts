import { expect, it } from "vitest";
import { Turns } from "./turns.ts";

it("turns are taken one after the other, whatever becomes of them", async () => {
  const turns = new Turns();
  const done: number[] = [];
  const slow = turns.take(async () => {
    await Promise.resolve();
    done.push(1);
    throw new Error("no");
  });
  const next = turns.take(() => Promise.resolve(void done.push(2)));
  await expect(slow).rejects.toThrow("no");
  await next;
  expect(done).toEqual([1, 2]);
});
