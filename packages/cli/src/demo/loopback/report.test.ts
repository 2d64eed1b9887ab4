import { expect, test } from "vitest";
import { GOOD, tallyOf } from "../../test-support/demo-findings.ts";
import { painter, reportText } from "../report-text.ts";
import { loopbackReport } from "./report.ts";

test("what was seen on loopback is counted and judged as in namespaces", () => {
  const { setup: _setup, restart: _restart, ...seen } = GOOD;
  const spread = [{ ...GOOD.spread[0]!, expected: ["cart-1", "cart-2"], tally: tallyOf({ "cart-1": 100, "cart-2": 200 }) }];
  const text = (more: Partial<typeof seen> = {}): string =>
    reportText(loopbackReport({ ...seen, spread, stageMs: 900, readyMs: 400, followedMs: 300, ...more }), painter(false));
  expect(text()).toMatch(/cart-1  █{10} +33% of 300/);
  expect(text()).toContain("Each change was followed within 300 ms; now frontend-v2-1 answer.");
  expect(text()).toMatch(/✓ 1,500 requests in 9.7 s, 0 failed; 1 connection kept open, 0 broken\.\n$/);
  expect(text({ refused: [{ family: "IPv4", outcome: "ok" }] })).toMatch(
    /search, IPv4: ok instead of refused\n\n✗ .* 1 thing went wrong\.\n$/,
  );
});
