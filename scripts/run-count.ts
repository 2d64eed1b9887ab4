/** What a finished test leaves for the count. `pending` means it never ran. */
export interface FinishedTest {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped" | "pending";
  /** Set by `needs(…)` where that skipped the test. */
  readonly unmetNeeds: readonly string[] | undefined;
}

/** The run in numbers. A forbidden skip counts as failed, and has a line in `complaints`. */
export interface RunCount {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly complaints: readonly string[];
}

/** Read the list of needs that may be lacking: one a line, `#` starts a comment. Never throws. */
export function parseAllowedSkips(text: string): ReadonlySet<string> {
  return new Set(
    text
      .split("\n")
      .map((line) => line.replace(/#.*/, "").trim())
      .filter((line) => line !== ""),
  );
}

/** Whether a run of the tests that `-t` names means this one; vitest reports all the others as skipped. Without a pattern it means all. */
export function isNamed(fullName: string, pattern: RegExp | undefined): boolean {
  return pattern === undefined || fullName.search(pattern) >= 0;
}

function complaintFor(test: FinishedTest, allowed: ReadonlySet<string>): string | undefined {
  if (test.unmetNeeds === undefined || test.unmetNeeds.length === 0) {
    return `skipped without a proven reason: ${test.name}: use needs(…) of scripts/needs.ts`;
  }
  const forbidden = test.unmetNeeds.filter((reason) => !allowed.has(reason.replace(/ \(.*/, "")));
  if (forbidden.length === 0) return undefined;
  return `skipped for a reason that scripts/allowed-skips.txt does not allow: ${test.name}: needs ${forbidden.join(", ")}`;
}

/**
 * Count a run.
 *
 * Shape: `otherFailures` are test files that did not load and errors outside any test.
 * Edges: a test that never ran counts as failed; so does a skip without reason or with one that is not in `allowed`.
 */
export function countRun(tests: readonly FinishedTest[], otherFailures: number, allowed: ReadonlySet<string>): RunCount {
  const inState = (state: FinishedTest["state"]): readonly FinishedTest[] => tests.filter((test) => test.state === state);
  const skipped = inState("skipped");
  const complaints = skipped.map((test) => complaintFor(test, allowed)).filter((complaint) => complaint !== undefined);
  return {
    passed: inState("passed").length,
    failed: inState("failed").length + inState("pending").length + otherFailures + complaints.length,
    skipped: skipped.length - complaints.length,
    complaints,
  };
}

/** The last line of every run. */
export function closingLine(count: Pick<RunCount, "passed" | "failed" | "skipped">): string {
  return `${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`;
}
