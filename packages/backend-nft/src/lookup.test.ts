import { expect, it } from "vitest";
import { questionFor } from "./lookup.ts";
import { layoutChain } from "./names.ts";

it("a table of whichever layout is asked for, so that one that counts is not taken for one that is gone", () => {
  expect(questionFor([]).chains).toEqual(expect.arrayContaining([layoutChain(true), layoutChain(false)]));
});
