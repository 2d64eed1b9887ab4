import { join } from "node:path";
import type { KubeCluster } from "./kube-cluster.ts";
import { focusOn, withSecondRun } from "./report.ts";
import { controlOf, countsOf, defectsAgainst, keepRun, readRuns, runLike } from "./results.ts";
import type { SuiteRun } from "./results.ts";
import { SKIPS, sortSkips } from "./skips.ts";
import { runSuite, WHOLE } from "./suite.ts";

/** What to play with which proxy. */
export interface RunOptions {
  readonly proxy: string;
  readonly focus: string;
  readonly procs: number;
  /** Only what failed in the kept run. */
  readonly isAgain: boolean;
  readonly where: SuiteRun["where"];
  readonly ginkgo: string;
  readonly e2eTest: string;
  readonly kubectl: string;
  /** For reports and logs. */
  readonly folder: string;
}

type Say = (line: string) => void;

/** More than these are not the machine's doing. */
const SECOND_MAX = 20;

/**
 * Play the suite, and once more, one at a time, what failed: on a busy machine tests run out of time. Print what came of it, and keep a whole run for
 * docs/conformance.md.
 * @returns whether nothing failed twice.
 */
export async function runAndReport(cluster: KubeCluster, options: RunOptions, say: Say): Promise<boolean> {
  const first = options.isAgain ? keptRun(cluster, options) : await runFirst(cluster, options, say);
  const run = await runAgain(first, cluster, options, say);
  const { passed, failed } = notify(run, say);
  if (options.focus === WHOLE) keepRun(run);
  if (passed === 0) say("no test passed: does --focus match any?");
  return failed === 0 && passed > 0;
}

function keptRun({ kubernetes, families }: KubeCluster, { proxy: backend, where }: RunOptions): SuiteRun {
  const kept = runLike({ kubernetes, families, backend, where }, readRuns());
  if (kept === undefined) throw new Error(`--again: no run of ${backend} with ${kubernetes} is kept; play the whole first`);
  return kept;
}

async function runFirst(cluster: KubeCluster, options: RunOptions, say: Say): Promise<SuiteRun> {
  const { proxy, procs, where } = options;
  const date = new Date().toISOString().slice(0, 10);
  const { valid: skips, expired } = sortSkips(SKIPS, date);
  for (const { match, reason, until } of expired)
    say(`! the skip ${match} ended on ${until} (${reason}): its tests run; look again whether they can`);
  const folder = join(options.folder, proxy);
  say(`the suite plays, ${procs} tests at a time; sig-network takes some 12 minutes on two quiet cores (${folder}/suite.log)`);
  const startMs = performance.now();
  const tests = await runSuite(cluster, { ...options, skips, folder });
  say(`played in ${((performance.now() - startMs) / 60_000).toFixed(1)} minutes`);
  return { kubernetes: cluster.kubernetes, backend: proxy, families: cluster.families, where, date, tests };
}

async function runAgain(run: SuiteRun, cluster: KubeCluster, options: RunOptions, say: Say): Promise<SuiteRun> {
  const failed = run.tests.filter(({ state }) => state === "failed");
  if (failed.length === 0 || failed.length > SECOND_MAX) return run;
  for (const { name, why } of failed) say(`once more, alone: ${name}: ${why ?? ""}`);
  const folder = join(options.folder, `${options.proxy}-again`);
  const second = await runSuite(cluster, { ...options, focus: focusOn(failed), skips: [], procs: 1, folder });
  return { ...run, tests: withSecondRun(run.tests, second) };
}

function notify(run: SuiteRun, say: Say): ReturnType<typeof countsOf> {
  for (const { name, state, why } of run.tests) if (state !== "passed") say(`${state === "failed" ? "✗" : "-"} ${name}: ${why ?? ""}`);
  const counts = countsOf(run.tests);
  const { passed, failed, skipped, second } = counts;
  say(
    `${run.backend}, Kubernetes ${run.kubernetes}, ${run.families}: ${passed} passed (${second} of them at the second try), ${failed} failed, ${skipped} left themselves out`,
  );
  const control = controlOf(run, readRuns());
  if (control === undefined || run.backend.startsWith("kube-proxy-")) return counts;
  const defects = defectsAgainst(run, control);
  say(`beside ${control.backend} of ${control.date}: ${defects.length} failed that passed there`);
  for (const { name } of defects) say(`  ${name}`);
  return counts;
}
