import { markdownTable } from "../written-part.ts";

/** One thing that was looked at. */
export interface Check {
  /** A package, or what was played. */
  readonly subject: string;
  readonly check: string;
  /** Nothing when all is well. */
  readonly problems: readonly string[];
  /** A figure or a word, for the table. */
  readonly detail: string;
}

/** Look at something: what it throws is a problem like those that it gives. */
export async function look(subject: string, check: string, how: () => Promise<Looked | void>): Promise<Check> {
  try {
    const { problems = [], detail = "" } = (await how()) ?? {};
    return { subject, check, problems, detail };
  } catch (error) {
    const { message, stdout = "" } = error as Error & { readonly stdout?: string };
    return { subject, check, problems: [`${message}\n${stdout}`.trim()], detail: "" };
  }
}

/** What a look gives. */
export interface Looked {
  readonly problems?: readonly string[];
  readonly detail?: string;
}

/** A table with a line per subject and a column per check, and below it the problems in full. Pure. */
export function tableText(checks: readonly Check[]): string {
  const columns = [...new Set(checks.map(({ check }) => check))];
  const subjects = [...new Set(checks.map(({ subject }) => subject))];
  const cell = (subject: string, column: string): string => {
    const found = checks.find((one) => one.subject === subject && one.check === column);
    if (found === undefined) return "-";
    if (found.problems.length > 0) return "FAILED";
    return found.detail === "" ? "ok" : found.detail;
  };
  const table = markdownTable(
    ["", ...columns],
    subjects.map((subject) => [subject, ...columns.map((column) => cell(subject, column))]),
  );
  const problems = checks.flatMap(({ subject, check, problems: all }) => all.map((one) => `${subject}: ${check}: ${one}`));
  return `${[table, ...(problems.length === 0 ? [] : ["", ...problems])].join("\n")}\n`;
}
