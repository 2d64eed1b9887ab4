import { escape } from "./markdown.ts";
import { MADE } from "./shell.ts";

/** How each rule fares on each backend, as `npm run status:update` writes it: by backend, then by rule. */
export type RuleStatus = Readonly<Record<string, Readonly<Record<string, string>>>>;

const PASSED = "passed";
const FAILED = "failed";

/**
 * Write beside each rule of the rulebook how it fares, and where it can be tried. Pure.
 * @param html the page, in which each rule is an element with its number as id
 * @param ran rules that the playground has an example of
 */
export function withRuleStatus(html: string, status: RuleStatus, ran: ReadonlySet<string>): string {
  return html.replace(/<li id="(r-\d+)" class="rule-item">([\s\S]*?)<\/li>/g, (_whole, id: string, inner: string) => {
    const rule = id.toUpperCase();
    return `<li id="${id}" class="rule-item">${inner}${statusHtml(rule, status, ran.has(rule))}</li>`;
  });
}

/** Count what each backend passed, as a table. Pure. */
export function ruleTotals(status: RuleStatus): readonly (readonly [backend: string, passed: number, failed: number, leftOut: number])[] {
  return Object.entries(status).map(([backend, rules]) => {
    const words = Object.values(rules);
    const passed = words.filter((word) => word === PASSED).length;
    const failed = words.filter((word) => word === FAILED).length;
    return [backend, passed, failed, words.length - passed - failed] as const;
  });
}

function statusHtml(rule: string, status: RuleStatus, isRun: boolean): string {
  const parts = Object.entries(status).flatMap(([backend, rules]) => {
    const word = rules[rule];
    return word === undefined ? [] : [backendHtml(escape(backend), word)];
  });
  if (parts.length === 0) return '<div class="rule-status quiet">no packet shows it: see its tests</div>';
  const entryPoint = isRun ? ` <a href="${MADE.playground}?rule=${rule}">try it</a>` : "";
  return `<div class="rule-status">${parts.join(" ")}${entryPoint}</div>`;
}

function backendHtml(backend: string, word: string): string {
  if (word === PASSED) return `<span class="good">✓ ${backend}</span>`;
  if (word === FAILED) return `<span class="bad">✗ ${backend}</span>`;
  return `<details class="quiet"><summary>– ${backend}</summary> ${escape(word)}</details>`;
}
