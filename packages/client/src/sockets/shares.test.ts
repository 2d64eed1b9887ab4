import { expect, test } from "vitest";
import { Shares } from "./shares.ts";

/** Fill a bound of 12 with what these rows hold. */
function holding(held: Readonly<Record<string, number>>): Shares<string> {
  const shares = new Shares<string>(12);
  for (const [row, count] of Object.entries(held)) for (let index = 0; index < count; index++) shares.add(row, `${row} ${index}`);
  return shares;
}

const A = "a/x:p/TCP";
const A2 = "a/y:p/TCP";
const B = "b/x:p/UDP";
const C = "c/x:p/TCP";

test.each([
  ["one that is alone may have everything", { [A]: 11 }, A, undefined],
  ["and then gives of its own", { [A]: 12 }, A, [A, true]],
  ["the namespace that has most gives", { [A]: 8, [B]: 4 }, B, [A, false]],
  ["the Service that has most of it", { [A]: 2, [A2]: 6, [B]: 4 }, B, [A2, false]],
  ["nobody gives who would have less than the taker", { [A]: 6, [B]: 6 }, B, [B, true]],
  ["nor does it go to and fro", { [A]: 6, [B]: 5, [C]: 1 }, B, [B, true]],
  ["a newcomer gets its part", { [A]: 6, [B]: 6 }, C, [A, false]],
  ["many Services of one namespace have its share together", { [A]: 1, [A2]: 5, [B]: 6 }, A, [A2, false]],
])("%s", (_name, held, row, giver) => {
  const found = holding(held).giverFor(row);
  const [first] = found?.held ?? [];
  expect(found === undefined ? undefined : [first?.split(" ")[0], found.isOwn]).toEqual(giver);
});

test("the least recently used is the first, and what is held no longer makes room", () => {
  const shares = holding({ [A]: 12 });
  shares.add(A, `${A} 0`);
  expect([...(shares.giverFor(A)?.held ?? [])].at(0)).toBe(`${A} 1`);
  shares.delete(A, `${A} 1`);
  shares.delete(A, `${A} 1`);
  expect([shares.size, shares.giverFor(A)]).toEqual([11, undefined]);
});
