import { FAMILIES, renderingText, ROW_COLUMNS, rowLines } from "@turnout/core";
import type { Cause, Step, Walk } from "@turnout/core";
import type { Cluster } from "./cluster.ts";
import { make, tableOf } from "./elements.ts";
import { cut } from "./limits.ts";
import { fateText, issueText, triedText } from "./trial.ts";
import type { Trial } from "./trial.ts";

/** Where the rulebook is, beside this page. */
const RULES_PAGE = "rules.html";

/** Show what becomes of the packet, step by step, and what is wrong. */
export function walkView(walk: Walk): readonly Node[] {
  const verdict = make("p", { class: `verdict ${walk.fate.is}`, id: "verdict" }, fateSentence(walk));
  const steps = make("ol", { id: "steps" }, ...walk.steps.map(stepItem));
  const notes = walk.notes.map((note) => make("p", { class: "quiet" }, `note: ${note}`));
  return [verdict, steps, ...walk.causes.map(causeBlock), ...notes];
}

function fateSentence({ fate }: Walk): string {
  if (fate.is === "forward") return `The packet goes ${fateText(fate)}.`;
  return `The packet is ${fateText(fate)}.`;
}

function stepItem({ says, rule }: Step): HTMLElement {
  return make("li", {}, says, ...(rule === undefined ? [] : [" ", ruleLink(rule)]));
}

function ruleLink(rule: string): HTMLElement {
  return make("a", { href: `${RULES_PAGE}#${rule.toLowerCase()}`, class: "rule" }, rule);
}

function causeBlock({ id, says, fix, isSure }: Cause): HTMLElement {
  const word = isSure === false ? "maybe" : "culprit";
  return make("div", { class: "cause" }, make("p", {}, make("strong", {}, `${word}: `), `${says} [${id}]`), make("p", {}, `mend: ${fix}`));
}

/** Show side by side what each backend's own rules did with the packet. */
export function backendsView(trials: readonly Trial[]): HTMLElement {
  const rows = trials.map(({ backend, walk, tried, isAsRuled }) => [
    make("code", {}, backend),
    walk === undefined ? "does not serve it" : fateText(walk.fate),
    tried === undefined ? "not tried" : triedText(tried),
    isAsRuled === undefined ? "" : isAsRuled ? make("span", { class: "good" }, "✓ the same") : make("span", { class: "bad" }, "✗ differs"),
  ]);
  return tableOf("What each backend does with the packet", ["Backend", "The rules say", "Its own rules did", ""], rows);
}

/** Show the rows of both families. */
export function rowsView({ changes }: Cluster): readonly Node[] {
  const lines = FAMILIES.flatMap((family) => changes[family].set.toSorted((a, b) => (a.key < b.key ? -1 : 1)).flatMap(rowLines));
  if (lines.length === 0) return [make("p", { class: "quiet" }, "No row: no Service counts here.")];
  const [row, , ...others] = ROW_COLUMNS;
  const { shown, rest } = cut(lines, "turnout print");
  return [tableOf("The rows of this node", [row, "NOTES", ...others], shown), ...restLine(rest)];
}

/** Show a backend's objects and plan, and the way of the packet through them. */
export function rulesView({ renderings, tried, complaints }: Trial): readonly Node[] {
  const way = tried === undefined ? [] : [make("h4", {}, "The packet's way through them"), ...linesView(tried.path, "turnout why")];
  const problems = complaints.length === 0 ? [] : [listOf(complaints)];
  const texts = renderings.flatMap((rendering) => linesView(renderingText(rendering).split("\n"), "turnout render"));
  return [...problems, ...way, make("h4", {}, "What turnout render prints"), ...texts];
}

function linesView(lines: readonly string[], command: string): readonly Node[] {
  const { shown, rest } = cut(lines, command);
  return [make("pre", { tabindex: "0" }, shown.join("\n")), ...restLine(rest)];
}

function restLine(rest: string | undefined): readonly Node[] {
  return rest === undefined ? [] : [make("p", { class: "quiet" }, rest)];
}

/** List what can't be read, and what was reported about objects. */
export function problemsView({ complaints, issues }: Cluster): readonly Node[] {
  const lines = [...new Set([...complaints, ...issues.map(issueText)])];
  return lines.length === 0 ? [] : [listOf(lines)];
}

function listOf(lines: readonly string[]): HTMLElement {
  const { shown, rest = [] } = cut(lines, "turnout print");
  return make("ul", { class: "complaints" }, ...shown.concat(rest).map((line) => make("li", {}, line)));
}
