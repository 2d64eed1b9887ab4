import { describe, expect, it } from "vitest";
import { tryInHalves } from "./halves.ts";

const ITEMS = Array.from({ length: 16 }, (_, index) => index);

/** Try all items where some are bad; tells what was done, how often it was tried, and what was refused. */
async function tried(items: readonly number[], isBad: (item: number) => boolean, isDivisible: boolean = true): Promise<unknown> {
  const done: number[] = [];
  let attempts = 0;
  const refused = await tryInHalves(items, {
    attempt: async (some) => {
      await Promise.resolve();
      attempts++;
      const bad = some.find(isBad);
      if (bad !== undefined) throw new Error(`item ${bad}`);
      done.push(...some);
    },
    onFailure: () => isDivisible,
  });
  return { done, attempts, refused: [...refused].map(([item, error]) => `${item}: ${(error as Error).message}`) };
}

describe("trying in halves", () => {
  it("takes one attempt where nothing is bad, and none where there is nothing", async () => {
    expect(await tried(ITEMS, () => false)).toEqual({ done: ITEMS, attempts: 1, refused: [] });
    expect(await tried([], () => true)).toEqual({ done: [], attempts: 0, refused: [] });
  });

  it("finds the bad ones, and does the others in order", async () => {
    expect(await tried(ITEMS, (item) => item === 5)).toEqual({
      done: ITEMS.filter((item) => item !== 5),
      attempts: 9,
      refused: ["5: item 5"],
    });
    expect(await tried(ITEMS, (item) => item % 15 === 0)).toMatchObject({ refused: ["0: item 0", "15: item 15"] });
  });

  it("refuses all at once where fewer would fail too", async () => {
    expect(await tried([1, 2], () => true, false)).toEqual({ done: [], attempts: 1, refused: ["1: item 1", "2: item 1"] });
  });

  it("ends with what hearing of a failure throws", async () => {
    const trial = tryInHalves(ITEMS, {
      attempt: () => Promise.reject(new Error("refused")),
      onFailure: () => {
        throw new Error("defect");
      },
    });
    await expect(trial).rejects.toThrow("defect");
  });
});
