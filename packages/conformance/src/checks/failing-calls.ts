import type { OracleWorld } from "../oracle/oracle-world.ts";
import type { Fault } from "../runner/fake-host.ts";
import { refs } from "../runner/short.ts";
import { LATER, nameOf, onTroubledHost } from "./recovery-run.ts";
import type { RecoveryRun, RecoverySetting } from "./recovery-run.ts";

/** Calls of the tool by a first sync after which the kit no longer believes that faults reach it. */
const CALLS_MAX = 50;

/** Have the first sync of a restart fail at each of its calls that read what is there, on a host of its own each. */
export async function failEachReading(given: RecoverySetting): Promise<void> {
  let isReached = true;
  for (let afterCalls = 0; isReached && afterCalls < CALLS_MAX; afterCalls++) {
    isReached = false;
    await onTroubledHost(given, `a restart whose first sync fails at call ${afterCalls + 1} that reads`, async (run) => {
      isReached = await failReading(run, afterCalls);
    });
  }
}

/** Have the first sync of a restart fail at each of its calls that change something, on a host of its own each. */
export async function failEachCall(given: RecoverySetting, when: Fault["when"]): Promise<void> {
  let isReached = true;
  for (let afterChanges = 0; isReached && afterChanges < CALLS_MAX; afterChanges++) {
    isReached = false;
    await onTroubledHost(given, `a restart whose first sync fails ${when} change ${afterChanges + 1}`, async (run) => {
      isReached = await failOnce(run, { when, afterChanges });
    });
  }
}

/** Something changes while no process runs, and the new one can't read what is there when it first tries. Says whether that was reached. */
async function failReading(run: RecoveryRun, afterCalls: number): Promise<boolean> {
  const { runner } = run;
  const before = await changeUnseen(run);
  runner.failReading(afterCalls);
  await run.syncAndLook(before, runner.world, [1, 2]);
  const wasReached = !runner.willFailReading;
  runner.failReading(undefined);
  if (wasReached) await run.recover([1, 2, LATER]);
  return wasReached;
}

/** One Service comes and one goes between the end of a process and the first sync of the next; gives what was wanted before. */
async function changeUnseen(run: RecoveryRun): Promise<OracleWorld> {
  const before = run.runner.world;
  run.put(LATER);
  for (const ref of refs(nameOf(3))) run.runner.remove(ref);
  await run.restart();
  run.checkpoint("the first sync of the new process");
  return before;
}

/** As {@link failReading}, where a change fails. */
async function failOnce(run: RecoveryRun, fault: Fault): Promise<boolean> {
  const { runner } = run;
  const before = await changeUnseen(run);
  runner.host.setFault(fault);
  const reports = await run.syncAndLook(before, runner.world, []);
  runner.host.setFault(undefined);
  if (reports.every(({ error }) => error === undefined) && runner.processes.every(({ notes }) => notes.failures.length === 0)) return false;
  await run.recover([1, 2, LATER]);
  return true;
}
