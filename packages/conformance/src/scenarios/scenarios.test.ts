import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { abilitiesOf, ALL_CAPABILITIES, FAMILIES, Store } from "@turnout/core";
import type { Issue, Protocol } from "@turnout/core";
import { verdictOf } from "../oracle/index.ts";
import type { OracleWorld } from "../oracle/index.ts";
import type { RawObject } from "@turnout/core/testing";
import { upsertRaw } from "@turnout/core/testing";
import { packetOf, probeText } from "../runner/probe-packet.ts";
import type { Scenario } from "../runner/scenario.ts";
import { REFERENCE_VARIANTS } from "../oracle/reference-variants.ts";
import { HOST_ADDRESSES, STAGE_NODE, STAGE_OBJECTS, STAGE_SETTINGS } from "../runner/stage.ts";
import { formatWords, parseWords, seenOfVerdict } from "../runner/words.ts";
import { SCENARIOS, WITHOUT_PACKETS } from "./index.ts";

const RULES = [...readFileSync(new URL("../../../../docs/rules.md", import.meta.url), "utf8").matchAll(/^- \*\*(R-\d{2})\*\*/gm)].map(
  ([, rule = ""]) => rule,
);
const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];
/** Entries of the specification's list that concern a packet; the others are about start-up, health, names in the kernel and other proxies. */
const SUBTLETIES_OF_PACKETS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 20, 24];
const byName = SCENARIOS.map((scenario) => [scenario.name, scenario] as const);

/** API objects by kind, namespace and name, as a scenario puts and removes them. */
class Objects {
  readonly #objects = new Map<string, RawObject>();
  /** Services by name, as they last were. */
  readonly services = new Map<string, RawObject>();

  get list(): readonly RawObject[] {
    return [...this.#objects.values()];
  }

  put(raw: RawObject): void {
    const { namespace = "", name } = { ...(raw["metadata"] as { readonly namespace?: string; readonly name?: string } | undefined) };
    this.#objects.set(`${String(raw["kind"])} ${namespace}/${String(name)}`, raw);
    if (raw["kind"] === "Service") this.services.set(String(name), raw);
  }

  remove(key: string): boolean {
    return this.#objects.delete(key);
  }
}

/** Ask the oracle for every packet of a scenario, and return what it says otherwise than the words. */
function disagreements({ settings, hostAddresses, families, protocols, steps }: Scenario): readonly string[] {
  const objects = new Objects();
  for (const raw of STAGE_OBJECTS) objects.put(raw);
  return steps.flatMap(({ say, put = [], remove = [], probes = [] }) => {
    for (const raw of put) objects.put(raw);
    const unowned = remove.filter(({ kind, namespace, name }) => !objects.remove(`${kind} ${namespace}/${name}`));
    const world: OracleWorld = {
      objects: objects.list,
      nodeName: STAGE_NODE,
      settings: { ...STAGE_SETTINGS, ...settings },
      hostAddresses: {
        IPv4: [...HOST_ADDRESSES.IPv4, ...(hostAddresses?.IPv4 ?? [])],
        IPv6: [...HOST_ADDRESSES.IPv6, ...(hostAddresses?.IPv6 ?? [])],
      },
      nodePortAddressesDefault: ["primary"],
      capabilities: abilitiesOf({ capabilities: ALL_CAPABILITIES }).capabilities,
      variants: REFERENCE_VARIANTS,
    };
    const wrong = probes.flatMap((probe) =>
      (families ?? FAMILIES).flatMap((family) =>
        (protocols ?? PROTOCOLS).flatMap((protocol) => {
          const packet = packetOf(probe, family, protocol, objects.services);
          const verdict = verdictOf(world, packet);
          const [words, oracle] = [formatWords(parseWords(probe.sees)), formatWords(seenOfVerdict(verdict, packet.source))];
          const because = verdict.because.join(", ");
          return words === oracle
            ? []
            : [`${say}: ${probeText(probe)} ${family} ${protocol}: ${words}; the oracle: ${oracle} (${because})`];
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
    expect(Object.keys(WITHOUT_PACKETS).length).toBeLessThan(4);
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
