import type { HoldStatus, Tally } from "@turnout/lab";
import { expect, test } from "vitest";
import { painter, reportText } from "../report-text.ts";
import type { LoopbackFindings } from "./run.ts";
import { loopbackReport } from "./report.ts";

function tally(servers: Readonly<Record<string, number>>, failed: Tally["failed"] = {}): Tally {
  const ok = Object.values(servers).reduce((sum, count) => sum + count, 0);
  const attempts = ok + Object.values(failed).reduce((sum, count) => sum + count, 0);
  return { attempts, ok, failed, servers, clients: {}, p50Ms: 1, p99Ms: 2 };
}

const HELD: HoldStatus = { state: "open", asks: 20, answers: 20, late: 0, server: "cart-1", client: "" };
const FINE: LoopbackFindings = {
  stageMs: 900,
  readyMs: 400,
  spread: tally({ "cart-1": 100, "cart-2": 100, "cart-3": 100 }),
  affinity: tally({ "cart-2": 60 }),
  refused: "reset",
  flow: { before: "dns-1", after: "dns-2", tookMs: 120 },
  rollout: { durationMs: 1_500, answering: ["cart-v2-1", "cart-v2-2", "cart-v2-3"], followedMs: 300 },
  traffic: { cart: tally({ "cart-1": 500 }), dns: tally({ "dns-1": 100 }) },
  trafficMs: 2_000,
  held: [HELD, HELD],
};

test("what went well is counted", () => {
  const { failures, summary } = loopbackReport(FINE);
  expect(failures).toEqual([]);
  expect(summary).toBe("600 requests in 2.0 s, 0 failed; 2 connections kept open, 0 broken.");
  expect(reportText(loopbackReport(FINE), painter(false))).toContain("cart-1  ██████████  33% of 300");
});

test.each<[Partial<LoopbackFindings>, string]>([
  [{ spread: tally({ "cart-1": 1, "cart-2": 1 }) }, "no request to cart reached cart-3"],
  [{ affinity: tally({ "cart-1": 1, "cart-2": 1 }) }, "checkout sent one client to cart-1, cart-2"],
  [{ affinity: tally({ "cart-1": 1 }, { timeout: 2 }) }, "checkout: timeout 2"],
  [{ refused: "ok" }, "search: ok instead of a refusal"],
  [{ flow: { before: "dns-1", after: "dns-1", tookMs: 1 } }, "a UDP client stayed with dns-1, which was gone"],
  [{ rollout: { durationMs: 1, answering: ["cart-1"], followedMs: 1 } }, "after the rollout cart was cart-1"],
  [{ traffic: { ...FINE.traffic, dns: tally({}) } }, "dns: no request was made"],
  [{ traffic: { ...FINE.traffic, cart: tally({ "cart-1": 1 }, { reset: 3 }) } }, "cart: reset 3"],
  [{ held: [HELD, { ...HELD, state: "reset" }] }, "a connection kept open to cart: reset"],
])("%j is a failure", (change, failure) => {
  const { failures, summary } = loopbackReport({ ...FINE, ...change });
  expect(failures).toEqual([failure]);
  expect(summary).toMatch(/1 thing went wrong\.$/);
});
