import { expect, it } from "vitest";
import { Mutex } from "./mutex.ts";

it("turns are taken one after the other, whatever becomes of them", async () => {
  const mutex = new Mutex();
  const done: number[] = [];
  const slow = mutex.run(async () => {
    await Promise.resolve();
    done.push(1);
    throw new Error("no");
  });
  const next = mutex.run(() => Promise.resolve(void done.push(2)));
  await expect(slow).rejects.toThrow("no");
  await next;
  expect(done).toEqual([1, 2]);
});
