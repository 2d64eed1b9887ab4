import { abilitiesOf } from "@turnout/core";
import type { BackendModule } from "@turnout/core";
import { BREAKAGES, catchBreakage } from "../breakages/breakages.ts";
import type { Breakage } from "../breakages/breakages.ts";
import { checkBackend } from "../checks/check.ts";
import type { CheckOptions } from "../checks/check.ts";
import type { ConformanceReport, Finding } from "../checks/finding.ts";
import { checkHistories } from "../histories/histories.ts";
import { rulesAsked } from "../checks/cells.ts";
import type { CreateFakeHost } from "../runner/fake-host.ts";
import type { Scenario } from "../runner/scenario.ts";
import type { Subject } from "../runner/subject.ts";
import { SCENARIOS } from "../scenarios/index.ts";

/** Registers one test. */
type RegisterTest = (name: string, run: () => Promise<void>, timeoutMs: number) => unknown;

/** A backend's tests, and what it is examined with. */
export interface DescribeOptions extends Pick<CheckOptions, "backendOptions"> {
  /** Registers one test: `it` or `test` of vitest, jest, mocha or node:test. */
  readonly it: RegisterTest & {
    /** Registers one that doesn't run, as all of those do; absent: such a test is left out. */
    readonly skip?: RegisterTest;
  };
  /** Default {@link SCENARIOS}. */
  readonly scenarios?: readonly Scenario[];
  /** Random changes; default 1,000. The environment's TURNOUT_HISTORY_STEPS overrides it, for a soak. */
  readonly steps?: number;
  /** Makes the host of the random changes, where it isn't that of the scenarios. */
  readonly createHistoryHost?: CreateFakeHost;
  /** The backend has all capabilities and variants that rules ask about: a rule that is skipped fails the test. Default false. */
  readonly skipsNothing?: boolean;
  /** Defects to be noticed, each of which takes as long as many scenarios; default {@link BREAKAGES}. */
  readonly breakages?: readonly Breakage[];
  /** Defects that the kit can't see in this backend, by their names, each with the reason; besides those of rules that its capabilities leave out. */
  readonly notSeen?: Readonly<Record<string, string>>;
  /** Called with the report on the scenarios, e.g. to compare it with what a page says; what it throws fails that test. */
  readonly onReport?: (report: ConformanceReport) => void;
}

/** Upper bounds for a machine that is busy with other things, too. */
const TIMEOUT_MS = 600_000;
const STEP_TIMEOUT_MS = 20;
const STEPS = 1_000;

/**
 * Describe a backend on its host in memory as tests: it does in every scenario what it should; random changes end where one sync from nothing
 * ends (from another seed with TURNOUT_HISTORY_SEED in the environment); and each defect of {@link BREAKAGES} is noticed, so that the host hides
 * nothing.
 *
 * Edges: a test of what the host doesn't show is skipped, and says so: name it in `notSeen` with the reason. A failing test's message has a line or more for each finding.
 * @throws {Error} for a name in `notSeen` that is no breakage's.
 */
export function describeBackend(module: BackendModule, createFakeHost: CreateFakeHost, options: DescribeOptions): void {
  const { it, scenarios = SCENARIOS, createHistoryHost = createFakeHost, skipsNothing = false, onReport, ...given } = options;
  const { breakages = BREAKAGES, notSeen = {} } = options;
  const known = new Set([...BREAKAGES, ...breakages].map(({ name }) => name));
  const unknown = Object.keys(notSeen).filter((name) => !known.has(name));
  if (unknown.length > 0) throw new Error(`no breakage has this name: ${unknown.join("; ")}`);
  const { TURNOUT_HISTORY_STEPS, TURNOUT_HISTORY_SEED } = process.env;
  const { skip } = it;
  const steps = Number(TURNOUT_HISTORY_STEPS ?? options.steps ?? STEPS);
  const seed = Number(TURNOUT_HISTORY_SEED ?? 1);
  it(
    `does in every scenario what it should${skipsNothing ? ", skipping nothing" : ""}`,
    async () => {
      const report = await checkBackend(module, createFakeHost, scenarios, given);
      const { findings, cells } = report;
      const skipped = new Set(skipsNothing ? cells.flatMap((cell) => (cell.skipped === undefined ? [] : [cell.skipped])) : []);
      failWith([...linesOf(findings), ...[...skipped].map((why) => `skipped: ${why}`)]);
      onReport?.(report);
    },
    TIMEOUT_MS,
  );
  it(
    `R-58 ends where one sync from nothing ends, whatever happens: ${steps} changes from seed ${seed}`,
    async () => {
      const report = await checkHistories(module, createHistoryHost, { ...given, seed, steps });
      failWith(linesOf(report.findings));
      if (report.steps !== steps) throw new Error(`only ${report.steps} of ${steps} changes were made`);
    },
    steps * STEP_TIMEOUT_MS + TIMEOUT_MS,
  );
  for (const breakage of breakages) {
    if (breakage.name in notSeen || !isAsked(breakage, module)) continue;
    const [name, run] = [`is caught when it ${breakage.name}`, () => expectCaught(breakage, { module, createFakeHost }, scenarios)];
    if (isShown(breakage, createFakeHost)) it(name, run, TIMEOUT_MS);
    else skip?.(`${name} (not asked: the host has no ${breakage.needs}())`, run, TIMEOUT_MS);
  }
}

/** Tell whether the backend is asked about a rule that a breakage offends against. A duty of the contract has no rule, and is always asked. */
function isAsked({ rules }: Breakage, module: BackendModule): boolean {
  const asked = rulesAsked(rules, abilitiesOf(module));
  return rules.length === 0 || rules.some((rule) => asked.includes(rule));
}

/** Tell whether a host has what it takes to show a defect. */
function isShown({ needs }: Breakage, createFakeHost: CreateFakeHost): boolean {
  return needs === undefined || createFakeHost()[needs] !== undefined;
}

/** Have the kit notice a defect. @throws {Error} when it notices none, or another one. */
async function expectCaught(breakage: Breakage, { module, createFakeHost }: Subject, scenarios: readonly Scenario[]): Promise<void> {
  const found = await catchBreakage(breakage, module, createFakeHost, scenarios);
  const { kinds, rules, of } = breakage;
  // A duty of the contract has no rule.
  const isOffended = rules.length === 0 || rules.some((rule) => found?.rules.includes(rule));
  if (found !== undefined && kinds.includes(found.kind) && isOffended) return;
  const got = found === undefined ? "nothing was found" : `found was, of ${found.rules.join(", ")}:\n${lineOf(found)}`;
  throw new Error(`wanted a finding of kind ${kinds.join(" or ")} that shows the offence against ${of}; ${got}`);
}

/** Findings as lines that tell enough to mend what is wrong. */
function linesOf(findings: readonly Finding[]): readonly string[] {
  return findings.map(lineOf);
}

function lineOf({ kind, scenario, step, family, what, expected, got, details }: Finding): string {
  return [`${kind} ${family} in ${scenario}, ${step}: ${what}: expected ${expected}, got ${got}`, ...details].join("\n  ");
}

function failWith(lines: readonly string[]): void {
  if (lines.length > 0) throw new Error(lines.join("\n"));
}
