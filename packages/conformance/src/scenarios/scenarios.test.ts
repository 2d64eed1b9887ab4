import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FAMILIES, Store } from "@turnout/core";
import type { Issue, Protocol } from "@turnout/core";
import { upsertRaw } from "@turnout/core/testing";
import { StageObjects } from "../checks/stage-objects.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { probeText } from "../runner/probe-packet.ts";
import type { Scenario } from "../runner/scenario.ts";
import { formatWords, parseWords } from "../runner/words.ts";
import { SCENARIOS, WITHOUT_PACKETS } from "./index.ts";

const RULES = [...readFileSync(new URL("../../../../docs/rules.md", import.meta.url), "utf8").matchAll(/^- \*\*(R-\d{2})\*\*/gm)].map(
  ([, rule = ""]) => rule,
);
const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];
/** Entries of the specification's list that concern a packet; the others are about start-up, health, names in the kernel and other proxies. */
const SUBTLETIES_OF_PACKETS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 20, 24];
const byName = SCENARIOS.map((scenario) => [scenario.name, scenario] as const);

/** Ask the oracle for every packet of a scenario, and return what it says otherwise than the words. */
function disagreements(scenario: Scenario): readonly string[] {
  const { families = FAMILIES, protocols = PROTOCOLS, steps } = scenario;
  const objects = new StageObjects(scenario, referenceBackend);
  return steps.flatMap(({ say, put = [], remove = [], probes = [] }) => {
    for (const raw of put) objects.put(raw);
    const unowned = remove.filter((ref) => !objects.remove(ref));
    const wrong = probes.flatMap((probe) =>
      families.flatMap((family) =>
        protocols.flatMap((protocol) => {
          const words = formatWords(parseWords(probe.sees));
          const oracle = objects.oracleWords(objects.packet(probe, family, protocol));
          return words === oracle ? [] : [`${say}: ${probeText(probe)} ${family} ${protocol}: ${words}; the oracle: ${oracle}`];
        }),
      ),
    );
    return [...wrong, ...unowned.map(({ kind, name }) => `${say}: there is no ${kind} ${name} to remove`)];
  });
}

/** What the core reports of a scenario's objects. */
function issuesOf({ steps }: Scenario): readonly Issue[] {
  const issues: Issue[] = [];
  const store = new Store({ report: (issue) => void issues.push(issue) });
  for (const raw of steps.flatMap(({ put = [] }) => put)) upsertRaw(store, raw);
  return issues;
}

describe("the scenarios", () => {
  it("have a name each", () => {
    expect(SCENARIOS.length).toBeGreaterThan(100);
    expect(new Set(byName.map(([name]) => name)).size).toBe(SCENARIOS.length);
  });

  it("show every rule of the rulebook, and no other", () => {
    const shown = new Set(SCENARIOS.flatMap(({ rules }) => rules));
    expect(RULES.length).toBeGreaterThan(50);
    expect(RULES.filter((rule) => !shown.has(rule) && WITHOUT_PACKETS[rule] === undefined)).toEqual([]);
    expect([...shown, ...Object.keys(WITHOUT_PACKETS)].filter((rule) => !RULES.includes(rule))).toEqual([]);
    expect(Object.keys(WITHOUT_PACKETS).filter((rule) => shown.has(rule))).toEqual([]);
    expect(Object.keys(WITHOUT_PACKETS).length).toBeLessThan(5);
  });

  it("guard every subtlety a packet can show", () => {
    const guarded = new Set(SCENARIOS.flatMap(({ subtleties = [] }) => subtleties));
    expect([...guarded].toSorted((a, b) => a - b)).toEqual(SUBTLETIES_OF_PACKETS);
  });

  it.each(byName)("%s: is what the oracle says", (_name, scenario) => {
    expect(disagreements(scenario)).toEqual([]);
  });

  it.each(byName)("%s: asks something, and refers to what was kept before", (_name, { rules, steps }) => {
    expect(rules).not.toEqual([]);
    expect(steps.flatMap(({ probes = [], flows = [] }) => [...probes, ...flows])).not.toEqual([]);
    const kept = new Set<string>();
    const unknown = steps.flatMap(({ flows = [], probes = [] }) => {
      const missing = flows.map((flow) => flow.kept).filter((name) => !kept.has(name));
      for (const { like, keep } of probes) {
        if (like !== undefined && !kept.has(like.kept)) missing.push(like.kept);
        if (keep !== undefined) kept.add(keep);
      }
      return missing;
    });
    expect(unknown).toEqual([]);
  });

  it.each(byName.filter(([, { rules }]) => !rules.includes("R-55")))("%s: gives nothing to complain about", (_name, scenario) => {
    expect(issuesOf(scenario)).toEqual([]);
  });

  it.each(byName.filter(([, { rules }]) => rules.includes("R-55")))("%s: is about bad input", (_name, scenario) => {
    expect(issuesOf(scenario)).not.toEqual([]);
  });
});
