import { BREAKAGES, catchBreakage, checkBackend, checkHistories, SCENARIOS } from "@turnout/conformance";
import type { Finding } from "@turnout/conformance";
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

/** Defects that can't be told here from what is declared, with the reason. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  "never masquerades": "endpoints see the node whatever rules say",
  "masquerades everything": "endpoints see the node whatever rules say",
  "takes pods for strangers": "which is a matter of masquerading but for the Local policy, R-31, that is left out",
  "forgets the hairpin": "endpoints see the node whatever rules say; what is found is filed under R-56",
  "forgets the hairpin of pods elsewhere": "endpoints see the node whatever rules say; what is found is filed under R-56",
  "uses another mark bit": "it marks nothing",
  "keeps only two source ranges": "R-39 is left out; what is found is filed under R-56",
  "refuses what it should drop": "it declares that it refuses",
  "does not know the external policy": "R-30 and R-33 are left out; what is found is filed under R-56",
  "does not know source ranges": "R-39 is left out; what is found is filed under R-56",
  "leaves undefined ports alone": "it declares that it does",
  "leaves unallocated addresses alone": "it declares that it does",
  "serves one family with the other's hands": "found by what is left after the end, before any packet shows it",
  "clears the host at its start": "where there is nothing to clear",
  "does not recognise what it made": "it ends with the process, so a new one finds nothing",
  "leaves something behind at cleanup": "it ends with the process, and is not cleaned up",
  "takes too much at cleanup": "it ends with the process, and is not cleaned up",
  "has a host that nobody tampers with": "its sockets are nobody else's to touch",
  "has a host where tampering does nothing": "its sockets are nobody else's to touch",
};

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

  it.each(BREAKAGES.filter(({ name }) => !(name in NOT_SEEN)).map((breakage) => [breakage.name, breakage] as const))(
    "is caught when it %s",
    async (_, breakage) => {
      const found = await catchBreakage(breakage, userspaceModule, createFakeHost, SCENARIOS);
      expect(breakage.kinds).toContain(found?.kind);
      // A duty of the contract has no rule.
      const isOffended = breakage.rules.length === 0 || breakage.rules.some((rule) => found?.rules.includes(rule));
      expect({ isOffended, rules: found?.rules }).toMatchObject({ isOffended: true });
    },
    TIMEOUT_MS,
  );
});
