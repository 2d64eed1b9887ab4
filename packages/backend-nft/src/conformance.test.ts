import { BREAKAGES, catchBreakage, checkBackend, checkHistories, SCENARIOS, service, slices } from "@turnout/conformance";
import type { Finding, Scenario } from "@turnout/conformance";
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

  it("R-36 has a pod elsewhere that reaches itself by this node see the node", async () => {
    const sees = "pod-1-1 saw pod-2-1, pod-2-1 saw node1";
    const scenario: Scenario = {
      name: "a pod elsewhere asks this node for itself",
      rules: ["R-31", "R-36"],
      steps: [
        {
          say: "the Local external policy",
          put: [
            service("web", { number: 1, ways: ["nodePort"], spec: { externalTrafficPolicy: "Local" } }),
            ...slices("web", ["pod-1-1", "pod-2-1"]),
          ],
          probes: [{ from: "pod-2-1", to: "web nodePort@node1", sees }],
        },
      ],
    };
    expect(lines((await checkBackend(nftModule, createFakeHost, [scenario])).findings)).toEqual([]);
  });

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
