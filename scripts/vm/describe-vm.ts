import type { VmCheckReport } from "./checks.ts";
import { runInVm } from "./run-in-vm.ts";
import type { VmOptions, VmResult } from "./run-in-vm.ts";

/** Checks that one guest plays, and how they become tests. */
export interface DescribeVmOptions extends VmOptions {
  /** Registers one test: `it` or `test` of vitest, jest, mocha or node:test. */
  readonly it: (name: string, run: () => Promise<void>, timeoutMs: number) => unknown;
  /** The names of the checks that the program plays with `runVmChecks`; each becomes a test. */
  readonly names: readonly string[];
  /** Runs the guest; default {@link runInVm}. */
  readonly run?: (options: VmOptions) => Promise<VmResult>;
}

/** For the tests beside the limit of the guest itself: its error says more than that a test took too long. */
const MARGIN_MS = 30_000;
const DEFAULT_TIMEOUT_MS = 300_000;
/** How much of the program's stderr goes into a message, in UTF-16 code units. */
const STDERR_TAIL = 2_000;

/**
 * Register a test for each check that a program plays in a guest, and one for the program's end. The guest boots with the first test that runs.
 *
 * Edges: each test ends when its check is reported. A check that never is fails with what ended the program. The last test fails for a check that
 * nobody named or that was reported twice, and for an exit code other than 0. All checks are played even where only some tests run.
 * @throws {Error} for a name that is given twice.
 */
export function describeVm(options: DescribeVmOptions): void {
  const { it, names, run = runInVm, timeoutMs = DEFAULT_TIMEOUT_MS, ...given } = options;
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  if (twice.length > 0) throw new Error(`a check has a name of its own: ${twice.join("; ")}`);
  let ran: Run | undefined;
  const execute = (): Run => (ran ??= startRun(names, (onReport) => run({ ...given, timeoutMs, onReport })));
  const limitMs = timeoutMs + MARGIN_MS;
  for (const name of names) it(name, () => execute().check(name), limitMs);
  it("ends well, with nothing else reported", () => execute().end(), limitMs);
}

/** A running guest as tests see it. */
interface Run {
  check(name: string): Promise<void>;
  end(): Promise<void>;
}

function startRun(names: readonly string[], run: (onReport: (line: string) => void) => Promise<VmResult>): Run {
  const reports = new Map(names.map((name) => [name, Promise.withResolvers<VmCheckReport>()]));
  const surprises: string[] = [];
  const reported = new Set<string>();
  const done = run((line) => {
    const report = parseReport(line);
    const waiting = report === undefined ? undefined : reports.get(report.name);
    if (report === undefined || waiting === undefined || reported.has(report.name)) surprises.push(line);
    else {
      reported.add(report.name);
      waiting.resolve(report);
    }
  });
  const missing = (name: string): Promise<never> =>
    done.then((result) => {
      throw new Error(`${name} was never reported: ${wordsFor(result)}`);
    });
  return {
    check: async (name) => {
      const { error } = await Promise.race([reports.get(name)?.promise ?? missing(name), missing(name)]);
      if (error !== undefined) throw errorFrom(error);
    },
    end: async () => {
      const result = await done;
      if (surprises.length > 0) throw new Error(`reported, but no check or not for the first time: ${surprises.join("\n")}`);
      if (result.code !== 0) throw new Error(wordsFor(result));
    },
  };
}

function wordsFor({ code, stderr }: VmResult): string {
  return `the program in the guest ended with exit code ${code}: ${stderr.trim().slice(-STDERR_TAIL)}`;
}

/** The error of a check with its own stack: the guest has the same paths, so a test runner finds the line. */
function errorFrom({ message, stack }: NonNullable<VmCheckReport["error"]>): Error {
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}

/** Read a report. Pure; undefined for what is none. */
function parseReport(line: string): VmCheckReport | undefined {
  try {
    const value = JSON.parse(line) as Partial<VmCheckReport> | undefined;
    return typeof value?.name === "string" ? (value as VmCheckReport) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
