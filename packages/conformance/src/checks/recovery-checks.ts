import type { Fault } from "../runner/fake-host.ts";
import type { RunnerOptions } from "../runner/runner.ts";
import type { Subject } from "../runner/subject.ts";
import { failEachCall, failEachReading } from "./failing-calls.ts";
import type { Findings } from "./findings.ts";
import { failForEver } from "./lasting-failure.ts";
import { onTroubledHost } from "./recovery-run.ts";
import type { RecoverySetting } from "./recovery-run.ts";
import { refuseRow } from "./refused-row.ts";

const FAULTS: readonly Fault["when"][] = ["before", "during", "after"];
/** What one thing costs others. */
const ISOLATION: readonly string[] = ["R-55"];
/** What a failure leaves behind. */
const RECOVERY: readonly string[] = ["R-58"];

/**
 * Look whether trouble with one thing costs others anything: at every moment packets of rows that work are answered.
 *
 * Shape: on hosts of their own, a restart with a row that the host refuses, one fault at each call of the first sync of a restart (those that
 * change something, and those that read what is there), and an object (of a row, of the skeleton) that fails for ever.
 * Edges: what isn't right without trouble is left to the scenarios. One kind of trouble that others pay for is enough.
 */
export async function checkRecovery(
  subject: Subject,
  setting: RunnerOptions,
  { findings, random }: { readonly findings: Findings; readonly random: () => number },
): Promise<void> {
  const given: RecoverySetting = { subject, setting, findings, random, rules: ISOLATION, known: findings.list.length };
  await onTroubledHost(given, "a restart with a row that the host refuses", refuseRow);
  for (const when of FAULTS) await failEachCall({ ...given, rules: RECOVERY }, when);
  await failEachReading({ ...given, rules: RECOVERY });
  for (const owner of ["row", "skeleton"] as const) await failForEver(given, owner);
}
