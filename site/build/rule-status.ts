/** How each rule fares on each backend, as `npm run status:update` writes it: by backend, then by rule. */
export type RuleStatus = Readonly<Record<string, Readonly<Record<string, string>>>>;

const PASSED = "passed";
const FAILED = "failed";

/** Write beside each rule of the rulebook how it fares. Pure: `html` is the page, in which each rule is an element with its number as id. */
export function withRuleStatus(html: string, status: RuleStatus, escape: (text: string) => string): string {
  return html.replace(/<li id="(r-\d+)" class="rule-item">([\s\S]*?)<\/li>/g, (_whole, id: string, inner: string) => {
    const rule = id.toUpperCase();
    return `<li id="${id}" class="rule-item">${inner}${statusHtml(rule, status, escape)}</li>`;
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

function statusHtml(rule: string, status: RuleStatus, escape: (text: string) => string): string {
  const parts = Object.entries(status).flatMap(([backend, rules]) => {
    const word = rules[rule];
    if (word === undefined) return [];
    const [sign, kind] = word === PASSED ? ["✓", "good"] : word === FAILED ? ["✗", "bad"] : ["–", "quiet"];
    return [`<span class="${kind}" title="${escape(`${backend}: ${word}`)}">${sign} ${escape(backend)}</span>`];
  });
  if (parts.length === 0) return '<p class="rule-status quiet">no packet shows it: see its tests</p>';
  return `<p class="rule-status">${parts.join(" ")}</p>`;
}
