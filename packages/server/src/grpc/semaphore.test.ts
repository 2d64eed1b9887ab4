import { describe, expect, test } from "vitest";
import { ManualClock } from "../test-support/world.ts";
import { Semaphore } from "./semaphore.ts";

const never = new AbortController().signal;

/** Let everything that is ready happen. */
async function flushPromises(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** A semaphore for two, with names of who got in. */
function semaphore(): {
  readonly come: (name: string, signal?: AbortSignal) => void;
  readonly leave: (name: string) => void;
  readonly inside: string[];
  readonly clock: ManualClock;
} {
  const clock = new ManualClock();
  const subject = new Semaphore({ most: 2, patienceMs: 100, clock });
  const inside: string[] = [];
  const ways = new Map<string, () => void>();
  const come = async (name: string, signal: AbortSignal): Promise<void> => {
    const leave = await subject.enter(signal);
    inside.push(name);
    ways.set(name, leave);
  };
  return {
    clock,
    inside,
    come: (name, signal = never) => void come(name, signal),
    leave: (name) => ways.get(name)?.(),
  };
}

describe("a semaphore", () => {
  test("lets so many in, and the others in their order as places become free", async () => {
    const { come, leave, inside } = semaphore();
    for (const name of ["a", "b", "c", "d", "e"]) come(name);
    await flushPromises();
    expect(inside).toEqual(["a", "b"]);
    leave("b");
    leave("b");
    await flushPromises();
    expect(inside).toEqual(["a", "b", "c"]);
    leave("a");
    leave("c");
    await flushPromises();
    expect(inside).toEqual(["a", "b", "c", "d", "e"]);
    for (const name of ["d", "e"]) leave(name);
    come("f");
    come("g");
    come("h");
    await flushPromises();
    expect(inside.slice(5)).toEqual(["f", "g"]);
  });

  test("does not wait for somebody who stays too long, nor counts him twice when he leaves in the end", async () => {
    const { come, leave, inside, clock } = semaphore();
    for (const name of ["slow", "slower", "c", "d", "e", "f"]) come(name);
    await flushPromises();
    clock.advance(100);
    await flushPromises();
    expect(inside).toEqual(["slow", "slower", "c", "d"]);
    leave("slow");
    leave("slower");
    await flushPromises();
    expect(inside).toHaveLength(4);
    leave("c");
    await flushPromises();
    expect(inside).toHaveLength(5);
  });

  test("forgets who went away while he waited", async () => {
    const { come, leave, inside } = semaphore();
    const gone = new AbortController();
    come("a");
    come("b");
    come("gone", gone.signal);
    come("d");
    await flushPromises();
    gone.abort();
    await flushPromises();
    // Whoever went away goes on to see that he is gone; he has no place.
    expect(inside).toEqual(["a", "b", "gone"]);
    leave("gone");
    await flushPromises();
    expect(inside).toEqual(["a", "b", "gone"]);
    leave("a");
    await flushPromises();
    expect(inside).toEqual(["a", "b", "gone", "d"]);
  });
});
