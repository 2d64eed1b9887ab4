import { Ledger } from "@turnout/core";
import type { ServiceFixture } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { cutSections, restoreInput } from "@turnout/host/iptables/text";
import type { Section } from "@turnout/host/iptables/text";
import type { IptablesObject } from "./objects.ts";
import { iptablesModule } from "./module.ts";
import { planDelta } from "./plan.ts";
import { renderRow } from "./render.ts";
import { renderSkeleton } from "./skeleton.ts";
import { FACTS, SHOWCASE, stateOf } from "./test-support/states.ts";

const OPTIONS = iptablesModule.parseOptions({});

/** The sections that lead from one state to another, or to the same one again from what somebody left of it. */
function sectionsBetween(
  before: readonly ServiceFixture[],
  after: readonly ServiceFixture[],
  whatIsLeft?: (object: IptablesObject) => IptablesObject,
): readonly Section[] {
  const ledger = new Ledger<IptablesObject>();
  for (const fixtures of [before, after]) {
    const { rows, node } = stateOf(fixtures, "IPv4");
    const context = { node, host: FACTS };
    if (fixtures === after) ledger.commit(ledger.delta(0), {});
    ledger.setAll(renderSkeleton(context, OPTIONS), new Map([...rows].map(([key, row]) => [key, renderRow(row, context, OPTIONS)])));
  }
  if (whatIsLeft !== undefined) {
    ledger.commit(ledger.delta(0), {});
    ledger.trust(new Map(Array.from(ledger.wanted(), ([id, object]) => [id, () => whatIsLeft(object)])));
  }
  const [step] = planDelta(ledger.delta(0)).steps;
  return step?.do === "restore" ? step.sections : [];
}

const MANY = Array.from({ length: 20 }, (_, index): ServiceFixture => ({ name: `svc-${index}`, number: 1 + index, local: 5, remote: 5 }));
const CHAINS_MAX = 30;

/** What playing sections came to: the chains with their rules, and lines that a kernel would refuse. */
interface RunResult {
  readonly chains: ReadonlyMap<string, readonly string[]>;
  readonly refused: readonly string[];
}

/** Play sections on nothing but names: every jump must lead to a chain that is there, and no chain may go that is jumped to. */
function execute(sections: readonly Section[], known: RunResult["chains"] = new Map()): RunResult {
  const chains = new Map(Array.from(known, ([name, rules]) => [name, [...rules]]));
  const refused: string[] = [];
  for (const line of restoreInput(sections).split("\n")) {
    const [word = "", name = ""] = line.split(" ");
    const text = line.slice(word.length + name.length + 2);
    if (word.startsWith(":")) chains.set(word.slice(1), []);
    const target = /-j (KUBE-[\w-]+)$/.exec(line)?.[1];
    if (target !== undefined && word !== "-D" && !chains.has(target)) refused.push(line);
    if (word === "-A" || word === "-I") chains.get(name)?.push(text);
    if (word === "-D")
      chains.set(
        name,
        (chains.get(name) ?? []).filter((rule) => rule !== text),
      );
    if (word !== "-X") continue;
    if ([...chains.values()].some((rules) => rules.some((rule) => rule.endsWith(`-j ${name}`)))) refused.push(line);
    chains.delete(name);
  }
  return { chains, refused };
}

const KNOWN: RunResult["chains"] = new Map(["KUBE-SERVICES", "KUBE-MARK-MASQ", "KUBE-NODEPORTS"].map((name) => [name, []]));

/** Rules that jump to chains of rows, in the order in which they come into force. */
function jumpsOf(sections: readonly Section[]): readonly { readonly chain: string; readonly target: string }[] {
  return restoreInput(sections)
    .split("\n")
    .flatMap((line) => {
      const [, chain = "", target = ""] = /^-A (\S+) .*-j (\S+)/.exec(line) ?? [];
      return chain === "" ? [] : [{ chain, target }];
    });
}

function sorted(chains: RunResult["chains"]): readonly (readonly [string, readonly string[]])[] {
  return [...chains].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

describe("cutSections", () => {
  it("leaves a change of the usual size as it is", () => {
    const sections = sectionsBetween([], SHOWCASE);
    expect(cutSections(sections)).toBe(sections);
  });

  it("loads many new chains ahead, few to a section, and ends with the very same rules", () => {
    const sections = sectionsBetween([], MANY);
    const cut = cutSections(sections, CHAINS_MAX);
    expect(cut.length).toBeGreaterThan(sections.length + 3);
    expect(Math.max(...cut.map(({ fresh }) => fresh.length))).toBeLessThanOrEqual(CHAINS_MAX);
    // What leads to them comes with the sections that were there before.
    const ahead = cut.slice(0, cut.length - sections.length);
    expect(restoreInput(ahead)).not.toContain("KUBE-SERVICES");
    const ran = execute(cut, KNOWN);
    expect(ran.refused).toEqual([]);
    expect(sorted(ran.chains)).toEqual(sorted(execute(sections, KNOWN).chains));
  });

  it("fills many chains that somebody emptied ahead, few to a section, and no half of what others jump to", () => {
    const before = execute(sectionsBetween([], MANY), KNOWN).chains;
    const emptied = new Map([...before.keys()].map((name) => [name, []]));
    const sections = sectionsBetween([], MANY, (object) => (object.kind === "chain" ? { ...object, value: "" } : object));
    const cut = cutSections(sections, CHAINS_MAX);
    expect(Math.max(...cut.map(({ fresh, declared }) => fresh.length + declared.length))).toBeLessThanOrEqual(CHAINS_MAX);
    expect(sorted(execute(cut, emptied).chains)).toEqual(sorted(execute(sections, emptied).chains));
    const filled = new Set(["KUBE-MARK-MASQ"]);
    const early = jumpsOf(cut).filter(({ chain, target }) => {
      filled.add(chain);
      return chain.startsWith("KUBE-SVC-") && !filled.has(target);
    });
    expect(early).toEqual([]);
    expect(filled.size).toBeGreaterThan(100);
  });

  it("deletes many chains behind, those that jump to others first", () => {
    const before = execute(sectionsBetween([], MANY), KNOWN).chains;
    const sections = sectionsBetween(MANY, []);
    const cut = cutSections(sections, CHAINS_MAX);
    expect(cut.length).toBeGreaterThan(sections.length + 3);
    const { chains, refused } = execute(cut, before);
    expect(refused).toEqual([]);
    expect([...chains.keys()].filter((name) => /^KUBE-(SVC|SEP)-/.test(name))).toEqual([]);
  });
});
