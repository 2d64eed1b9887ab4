import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withWritten } from "@turnout/house/written-part";
import type { Families } from "./kube-cluster.ts";
import type { TestResult } from "./report.ts";

/** One whole run of the suite, as it is kept. */
export interface SuiteRun {
  readonly kubernetes: string;
  /** A backend of Turnout, or `kube-proxy-<mode>`. */
  readonly backend: string;
  readonly families: Families;
  /** What made the cluster. */
  readonly where: "namespaces" | "kind";
  /** YYYY-MM-DD. */
  readonly date: string;
  readonly tests: readonly TestResult[];
}

/** How tests ended, in numbers. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Of those that passed. */
  readonly second: number;
}

const RESULTS = fileURLToPath(new URL("results", import.meta.url));
const PAGE = fileURLToPath(new URL("../../docs/conformance.md", import.meta.url));
const MARKS = ["<!-- written by npm run e2e:cluster -->", "<!-- end of what is written -->"] as const;

/** Count. Pure. */
export function countsOf(tests: readonly TestResult[]): Counts {
  const count = (state: TestResult["state"]): number => tests.filter((test) => test.state === state).length;
  return {
    passed: count("passed"),
    failed: count("failed"),
    skipped: count("skipped"),
    second: tests.filter(({ failedFirst }) => failedFirst !== undefined).length,
  };
}

/** The tests that a proxy failed and the control passed: defects, until something else is shown. Pure. */
export function defectsAgainst(run: SuiteRun, control: SuiteRun): readonly TestResult[] {
  const passed = new Set(control.tests.filter(({ state }) => state === "passed").map(({ name }) => name));
  return run.tests.filter(({ name, state }) => state === "failed" && passed.has(name));
}

/** The control of a run: kube-proxy in the same kind of cluster, in the mode of the backend before the other one. Pure. */
export function controlOf(run: SuiteRun, runs: readonly SuiteRun[]): SuiteRun | undefined {
  const modes = run.backend === "iptables" ? ["iptables", "nftables"] : ["nftables", "iptables"];
  return modes.map((mode) => runLike({ ...run, backend: `kube-proxy-${mode}` }, runs)).find((control) => control !== undefined);
}

/** The run of the same proxy in the same kind of cluster. Pure. */
export function runLike(
  like: Pick<SuiteRun, "kubernetes" | "backend" | "families" | "where">,
  runs: readonly SuiteRun[],
): SuiteRun | undefined {
  return runs.find(
    ({ kubernetes, backend, families, where }) =>
      kubernetes === like.kubernetes && backend === like.backend && families === like.families && where === like.where,
  );
}

/** All kept runs, the newest Kubernetes first. */
export function readRuns(): readonly SuiteRun[] {
  mkdirSync(RESULTS, { recursive: true });
  const runs = readdirSync(RESULTS)
    .filter((name) => name.endsWith(".json"))
    .map((name) => JSON.parse(readFileSync(join(RESULTS, name), "utf8")) as SuiteRun);
  const keyOf = ({ where, families, backend }: SuiteRun): string => `${where} ${families} ${backend}`;
  return runs.toSorted((a, b) => b.kubernetes.localeCompare(a.kubernetes, "en", { numeric: true }) || (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** Keep a run in the place of an earlier one like it, and write the page's table anew. */
export function keepRun(run: SuiteRun): void {
  mkdirSync(RESULTS, { recursive: true });
  const name = [run.kubernetes, run.backend, run.families.toLowerCase().replace(", ", "-"), run.where].join("-");
  writeFileSync(join(RESULTS, `${name}.json`), `${JSON.stringify(run, undefined, 2)}\n`);
  writeFileSync(PAGE, pageWith(readFileSync(PAGE, "utf8"), tableOf(readRuns())));
}

/** The page as it is. */
export function readPage(): string {
  return readFileSync(PAGE, "utf8");
}

/** A page with another table between its marks. Pure. @throws {Error} without the marks. */
export function pageWith(page: string, table: string): string {
  return withWritten(page, MARKS, table.trimEnd());
}

/** The table of runs, a row each, and below it what failed. Pure. */
export function tableOf(runs: readonly SuiteRun[]): string {
  const rows = runs.map((run) => {
    const { passed, failed, skipped, second } = countsOf(run.tests);
    const control = run.backend.startsWith("kube-proxy-") ? undefined : controlOf(run, runs);
    const nextTo = control === undefined ? "" : `${defectsAgainst(run, control).length} (${control.backend})`;
    return `| ${[run.kubernetes, `\`${run.backend}\``, run.families, run.where, passed, second, failed, skipped, nextTo, run.date].join(" | ")} |\n`;
  });
  const head =
    "| Kubernetes | backend | families | cluster | passed | of these at the second try | failed | left themselves out | failed, and passed with the control | date |\n|---|---|---|---|---|---|---|---|---|---|\n";
  const failures = runs.flatMap((run) => run.tests.filter(({ state }) => state === "failed").map((test) => failureLine(run, test)));
  return head + rows.join("") + (failures.length === 0 ? "" : `\nWhat failed, and why:\n${failures.join("")}`);
}

function failureLine({ kubernetes, backend, families }: SuiteRun, { name, why }: TestResult): string {
  const plain = (why ?? "").replaceAll("|", "\\|").replaceAll("`", "'");
  return `- ${kubernetes}, \`${backend}\`, ${families}: ${name.replaceAll("`", "'")}: ${plain}\n`;
}
