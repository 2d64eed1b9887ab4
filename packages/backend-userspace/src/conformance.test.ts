import { checkBackend, checkHistories, SCENARIOS } from "@turnout/core/testing";
import type { Finding } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { userspaceModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

const TIMEOUT_MS = 600_000;
/** Random changes; set TURNOUT_HISTORY_STEPS for a soak, and TURNOUT_HISTORY_SEED to begin elsewhere. */
const STEPS = Number(process.env["TURNOUT_HISTORY_STEPS"] ?? 20_000);
const SEED = Number(process.env["TURNOUT_HISTORY_SEED"] ?? 1);

/** Findings as lines that tell enough to mend what is wrong. */
function lines(findings: readonly Finding[]): readonly string[] {
  return findings.map(({ kind, scenario, step, family, what, expected, got, details }) =>
    [`${kind} ${family} in ${scenario}, ${step}: ${what}: expected ${expected}, got ${got}`, ...details].join("\n  "),
  );
}

describe("the userspace backend on its host in memory", () => {
  it(
    "does in every scenario what it should",
    async () => {
      const { findings } = await checkBackend(userspaceModule, createFakeHost, SCENARIOS);
      expect(lines(findings)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    `R-58 ends where one sync from nothing ends, whatever happens: ${STEPS} changes from seed ${SEED}`,
    async () => {
      const { findings, steps } = await checkHistories(userspaceModule, createFakeHost, { seed: SEED, steps: STEPS });
      expect(lines(findings)).toEqual([]);
      expect(steps).toBe(STEPS);
    },
    STEPS * 20 + TIMEOUT_MS,
  );
});
