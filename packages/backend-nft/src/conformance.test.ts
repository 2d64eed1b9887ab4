import { BREAKAGES, catchBreakage, checkBackend, checkHistories, SCENARIOS } from "@turnout/conformance";
import type { Finding } from "@turnout/conformance";
import { describe, expect, it } from "vitest";
import { nftModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

const TIMEOUT_MS = 600_000;
/** Random changes; set TURNOUT_HISTORY_STEPS for a soak, and TURNOUT_HISTORY_SEED to begin elsewhere. */
const STEPS = Number(process.env["TURNOUT_HISTORY_STEPS"] ?? 50_000);
const SEED = Number(process.env["TURNOUT_HISTORY_SEED"] ?? 1);

/** Findings as lines that tell enough to mend what is wrong. */
function lines(findings: readonly Finding[]): readonly string[] {
  return findings.map(({ kind, scenario, step, family, what, expected, got, details }) =>
    [`${kind} ${family} in ${scenario}, ${step}: ${what}: expected ${expected}, got ${got}`, ...details].join("\n  "),
  );
}

describe("the nft backend on its host in memory", () => {
  it(
    "does in every scenario what it should, skipping nothing",
    async () => {
      const { findings, cells } = await checkBackend(nftModule, createFakeHost, SCENARIOS);
      expect(lines(findings)).toEqual([]);
      expect(cells.filter(({ skipped }) => skipped !== undefined)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    `R-58 ends where one sync from nothing ends, whatever happens: ${STEPS} changes from seed ${SEED}`,
    async () => {
      const { findings, steps } = await checkHistories(nftModule, createFakeHost, { seed: SEED, steps: STEPS });
      expect(lines(findings)).toEqual([]);
      expect(steps).toBe(STEPS);
    },
    STEPS * 20 + TIMEOUT_MS,
  );

  it.each(BREAKAGES.map((breakage) => [breakage.name, breakage] as const))(
    "is caught when it %s",
    async (_, breakage) => {
      const found = await catchBreakage(breakage, nftModule, createFakeHost, SCENARIOS);
      expect(breakage.kinds).toContain(found?.kind);
      // A duty of the contract has no rule.
      const isOffended = breakage.rules.length === 0 || breakage.rules.some((rule) => found?.rules.includes(rule));
      expect({ isOffended, rules: found?.rules }).toMatchObject({ isOffended: true });
    },
    TIMEOUT_MS,
  );
});
