/** How one rule fares in one family and protocol, of what `turnout conformance -o json` says of a backend. */
interface RuleCell {
  readonly rule: string;
  readonly probes: number;
  readonly findings: number;
  readonly skipped?: string;
}

/** What the kit's report says of one backend, as far as single rules go. */
export interface BackendRules {
  readonly backend: string;
  readonly cells: readonly RuleCell[];
}

/**
 * Say of each backend how it fares with each rule, over all families and protocols: `passed`, `failed`, or why the rule was left out. Pure.
 * @returns by backend, then by rule in the order of their numbers
 */
export function ruleStatus(backends: readonly BackendRules[]): Readonly<Record<string, Readonly<Record<string, string>>>> {
  return Object.fromEntries(
    backends.map(({ backend, cells }) => {
      const rules = [...Map.groupBy(cells, ({ rule }) => rule)].toSorted(([a], [b]) => (a < b ? -1 : 1));
      return [backend, Object.fromEntries(rules.map(([rule, own]) => [rule, wordOf(own)]))];
    }),
  );
}

function wordOf(cells: readonly RuleCell[]): string {
  if (cells.some(({ findings }) => findings > 0)) return "failed";
  if (cells.some(({ probes }) => probes > 0)) return "passed";
  return cells.find(({ skipped }) => skipped !== undefined)?.skipped ?? "no packet was sent";
}
