import { describe, expect, test } from "vitest";
import { isWell, linesOf, measure } from "./measured.ts";
import type { TrafficReport } from "./traffic.ts";

const REPORT: TrafficReport = {
  connections: 500,
  connectionsLost: 0,
  losses: [],
  attempts: 1_000,
  failed: {},
  udpFlows: 20,
  datagrams: 300,
  datagramsLost: 0,
};
const ROW = "| a → b | 500 of 500 | 0 of 1000 | 0 of 300 (20 flows) |";

describe("a move", () => {
  test("that works is a row", async () => {
    const measured = await measure({ stop: () => Promise.resolve(REPORT) }, () => Promise.resolve());
    expect([linesOf("a → b", measured), isWell(measured)]).toEqual([{ row: ROW, notes: [] }, true]);
  });

  test("that fails on its way has its row as well, and then says what failed", async () => {
    const measured = await measure({ stop: () => Promise.resolve(REPORT) }, () => Promise.reject(new Error("it doesn't serve")));
    expect([linesOf("a → b", measured), isWell(measured)]).toEqual([{ row: ROW, notes: ["a → b failed: it doesn't serve"] }, false]);
  });

  test("of which nothing can be counted any more fails with its own reason", async () => {
    const stop = (): Promise<TrafficReport> => Promise.reject(new Error("agents are gone"));
    await expect(measure({ stop }, () => Promise.reject(new Error("it doesn't serve")))).rejects.toThrow("it doesn't serve");
    await expect(measure({ stop }, () => Promise.resolve())).rejects.toThrow("agents are gone");
  });

  test("that loses something is not well, and says what, each line once", () => {
    const report = { ...REPORT, connectionsLost: 2, losses: ["x", "x", "y"], failed: { refused: 3 } };
    expect(linesOf("a", { report, failure: undefined })).toEqual({
      row: "| a | 498 of 500 | 3 refused of 1000 | 0 of 300 (20 flows) |",
      notes: ["2 × x", "y"],
    });
    expect(isWell({ report, failure: undefined })).toBe(false);
  });
});
