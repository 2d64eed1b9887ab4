import { expect, it } from "vitest";
import { replacing } from "./replacing.ts";

class Counter {
  #count = 1;
  get count(): number {
    return this.#count;
  }
  add(): number {
    return (this.#count += 1);
  }
}

it("replaces members, and calls the others on the original, however it was made", () => {
  const counter = replacing(new Counter(), { count: 7 });
  expect([counter.add(), counter.add(), counter.count]).toEqual([2, 3, 7]);
  const frozen = replacing(Object.freeze<{ one: number; two: number }>({ one: 1, two: 2 }), { two: 3 });
  expect({ ...frozen }).toEqual({ one: 1, two: 3 });
});
