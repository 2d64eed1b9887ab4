import { describe, expect, it } from "vitest";
import { BREAKAGES, catchBreakage } from "./breakages.ts";
import { checkBackend } from "../checks/check.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { createReferenceHost } from "../reference/reference-host.ts";
import { SCENARIOS } from "../scenarios/index.ts";

describe("the kit on trial", () => {
  it("finds nothing wrong with reference", async () => {
    const { findings, cells } = await checkBackend(referenceBackend, createReferenceHost, SCENARIOS);
    expect(findings.map(({ scenario, step, what, expected, got }) => [scenario, step, what, expected, got])).toEqual([]);
    expect(cells.filter(({ skipped }) => skipped !== undefined)).toEqual([]);
  }, 60_000);

  it("has enough defects to find, each with a name of its own", () => {
    expect(new Set(BREAKAGES.map(({ name }) => name)).size).toBe(BREAKAGES.length);
    expect(BREAKAGES.length).toBeGreaterThanOrEqual(15);
  });

  it.each(BREAKAGES.map((breakage) => [breakage.name, breakage] as const))(
    "catches a backend that %s",
    async (_, breakage) => {
      const found = await catchBreakage(breakage, referenceBackend, createReferenceHost, SCENARIOS);
      expect(breakage.kinds).toContain(found?.kind);
      // A duty of the contract has no rule.
      const isOffended = breakage.rules.length === 0 || breakage.rules.some((rule) => found?.rules.includes(rule));
      expect({ isOffended, rules: found?.rules }).toMatchObject({ isOffended: true });
    },
    60_000,
  );
});
