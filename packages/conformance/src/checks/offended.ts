import { rulesAsked } from "./cells.ts";
import type { Abilities } from "@turnout/core";
import type { FlowFate } from "../oracle/flow-fate.ts";
import type { FindingKind } from "./finding.ts";

/** Which part of a verdict a backend missed: where the packet went, or whom the server saw. */
export type Missed = "fate" | "source" | "hairpin";

/** Rules that say what source address a server sees; those of the Local policy say where the packet goes, too. */
const SOURCE_RULES: readonly string[] = ["R-24", "R-25", "R-26", "R-28", "R-30", "R-31", "R-32"];
/** Rules that decide where a packet goes and whom its server sees; a scenario about another one shows it by whatever its packets meet. */
const JUDGED = /^R-(?:2[2-9]|3\d|40|47|48|62)$/;
/** Rules that say nothing of where a packet goes. */
const ONLY_SOURCE_RULES: readonly string[] = ["R-24", "R-25", "R-26", "R-35", "R-36"];
const FLOW_RULES: Readonly<Record<Exclude<FlowFate, "either">, readonly string[]>> = {
  forget: ["R-41", "R-43", "R-44"],
  keep: ["R-42", "R-44", "R-45"],
};
/** What a finding offends against that no packet showed; those of the other kinds offend against the contract, which has no numbers. */
const RULE_OF_KIND: Partial<Readonly<Record<FindingKind, string>>> = { error: "R-58", "not-idempotent": "R-58", leftover: "R-58" };

/**
 * Name the rules that a packet's fate offends against, of those that decided it. Pure.
 *
 * @param because rules of a verdict, the most telling first
 */
export function offendedBy(because: readonly string[], missed: Missed): readonly string[] {
  if (missed === "hairpin") return because.filter((rule) => rule === "R-36");
  const isMeant = (rule: string): boolean =>
    (missed === "source" ? SOURCE_RULES : ONLY_SOURCE_RULES).includes(rule) === (missed === "source");
  return because.filter(isMeant);
}

/**
 * Name what a finding of a scenario offends against. Pure.
 *
 * Shape: the rules that decided the packet's fate, as far as the scenario is about them; otherwise those that it is about and that decide no
 * packet by themselves (e.g. R-53); otherwise those that decided.
 * Edges: where nothing else is asked than that what can't be done fails closed, that is offended.
 */
export function offendedIn(
  scenario: readonly string[],
  offended: readonly string[],
  abilities: Pick<Abilities, "capabilities">,
): readonly string[] {
  const asked = rulesAsked(scenario, abilities);
  if (asked.every((rule) => rule === "R-56")) return asked;
  const reported = rulesAsked(offended, abilities);
  const meant = reported.filter((rule) => asked.includes(rule));
  const subject = asked.filter((rule) => !JUDGED.test(rule));
  return [meant, subject, reported].find((rules) => rules.length > 0) ?? asked;
}

/** Name the rules that may be offended where a flow met another fate than this. Pure. */
export function offendedByFlow(fate: Exclude<FlowFate, "either">): readonly string[] {
  return FLOW_RULES[fate];
}

/** Name what findings of a kind offend against, wherever they are made; undefined: that depends on what was asked. Pure. */
export function offendedByKind(kind: FindingKind): readonly string[] | undefined {
  if (kind === "contract" || kind === "cleanup") return [];
  const rule = RULE_OF_KIND[kind];
  return rule === undefined ? undefined : [rule];
}
