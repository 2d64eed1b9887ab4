import { expect, test } from "vitest";
import { flushPromises, ToyClock } from "../../test-support/toys.ts";
import { RequestQueue } from "./request-queue.ts";

/** A queue, answers that take 50 ms of work, and who was answered. */
function setup() {
  const clock = new ToyClock();
  const answered: string[] = [];
  let workedMs = 0;
  const sleptMs = clock.nowMs.bind(clock);
  clock.nowMs = () => sleptMs() + workedMs;
  const queue = new RequestQueue(clock);
  const ask = (address: string, network = "192.0.2.0"): (() => void) =>
    queue.add({ network, address }, async () => {
      await Promise.resolve();
      answered.push(address);
      workedMs += 50;
    });
  return { clock, queue, answered, ask };
}

test("an answer is charged with the work that it does after it waited for something", async () => {
  const { clock, answered, ask } = setup();
  for (let again = 0; again < 10; again++) ask("a");
  await flushPromises();
  expect(answered).toHaveLength(3);
  await clock.advance(5_000);
  expect(answered).toHaveLength(10);
});

test("an answer that waits for long keeps the next one waiting, but not for ever", async () => {
  const { clock, queue, answered, ask } = setup();
  queue.add({ network: "n", address: "slow" }, () => new Promise(() => undefined));
  ask("a");
  await clock.advance(900);
  expect(answered).toEqual([]);
  await clock.advance(1_100);
  expect(answered).toEqual(["a"]);
});

test("networks take turns, and addresses within one", async () => {
  const { clock, answered, ask } = setup();
  for (let again = 0; again < 6; again++) ask("a", "n");
  await flushPromises();
  ask("b", "n");
  ask("c", "m");
  await clock.advance(5_000);
  expect(answered.join("")).toBe("aaaacbaa");
});

test("what is dropped while it waits takes no turn", async () => {
  const { clock, answered, ask } = setup();
  for (let again = 0; again < 3; again++) ask("a");
  await flushPromises();
  const drops = ["b", "b", "c"].map((address) => ask(address));
  for (const drop of drops) drop();
  ask("d");
  await clock.advance(600);
  expect(answered).toEqual(["a", "a", "a", "d"]);
});
