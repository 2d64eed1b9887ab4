import { expect, it } from "vitest";
import type { ServicePort } from "../model/rows.ts";
import { RecentRows } from "./recent-rows.ts";

it("rows are made once while they are asked for, and let go when many others were", () => {
  const recent = new RecentRows(10);
  let made = 0;
  const get = (key: string): readonly ServicePort[] =>
    recent.get(key, 1, () => {
      made += 1;
      return [];
    });
  const kept = get("kept");
  for (let turn = 0; turn < 30; turn++) {
    get(`other ${turn}`);
    expect(get("kept")).toBe(kept);
  }
  expect(made).toBe(31);
  get("other 0");
  expect(made).toBe(32);
  for (let turn = 0; turn < 30; turn++) get(`more ${turn}`);
  expect(get("kept")).not.toBe(kept);
});
