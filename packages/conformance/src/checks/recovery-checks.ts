import { FAMILIES } from "@turnout/core";
import type { Fault } from "../runner/fake-host.ts";
import type { RunnerOptions } from "../runner/runner.ts";
import type { Subject } from "../runner/subject.ts";
import type { Findings } from "./findings.ts";
import { onTroubledHost, LATER, nameOf, objectsOf, TROUBLED, WORKING, REST_MS } from "./recovery-run.ts";
import type { RecoverySetting, RecoveryRun } from "./recovery-run.ts";
import { addressesOf, refs } from "../runner/short.ts";
import { failingObject } from "../runner/failing-object.ts";
import { HOST_ADDRESSES } from "../runner/stage.ts";
import type { OracleWorld } from "../oracle/oracle-world.ts";

/** Calls of the tool by a first sync after which the kit no longer believes that faults reach it. */
const CALLS_MAX = 50;

/** Have the first sync of a restart fail at each of its calls that read what is there, on a host of its own each. */
async function failEachReading(given: RecoverySetting): Promise<void> {
  let isReached = true;
  for (let afterCalls = 0; isReached && afterCalls < CALLS_MAX; afterCalls++) {
    isReached = false;
    await onTroubledHost(given, `a restart whose first sync fails at call ${afterCalls + 1} that reads`, async (run) => {
      isReached = await failReading(run, afterCalls);
    });
  }
}

/** Have the first sync of a restart fail at each of its calls that change something, on a host of its own each. */
async function failEachCall(given: RecoverySetting, when: Fault["when"]): Promise<void> {
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

const NODE_RANGES: readonly string[] = ["172.18.0.0/16", "fd00:18::/64"];

/** Have an object of a row, or of the skeleton, fail for ever. */
async function failForEver(given: RecoverySetting, owner: "row" | "skeleton"): Promise<void> {
  const { subject, setting } = given;
  const failing = { ...given, subject: failingObject(subject, owner, nameOf(TROUBLED)), setting: onAllOf(NODE_RANGES, setting) };
  await onTroubledHost(failing, `an object of the ${owner} that fails for ever`, stayWithout);
}

/** One object is never in force; everything else is, and what changes later comes into force. */
async function stayWithout(run: RecoveryRun): Promise<void> {
  const { runner } = run;
  const before = runner.world;
  run.put(TROUBLED);
  await run.restart();
  run.checkpoint("the first sync of the new process");
  await run.syncAndLook(before, runner.world, [...WORKING, TROUBLED]);
  const between = runner.world;
  run.checkpoint("a Service comes, and the host gets another address");
  run.put(LATER);
  await runner.setHostAddresses(withOneMore(HOST_ADDRESSES));
  await run.syncAndLook(between, runner.world, [...WORKING, TROUBLED, LATER]);
  run.checkpoint("what failed is tried again");
  await runner.host.advance(REST_MS);
  await run.syncAndLook(runner.world, runner.world, [...WORKING, TROUBLED, LATER]);
}

/** Node ports on all of the host's addresses that are in these ranges: then another address changes what is there whatever the Services are. */
function onAllOf(ranges: readonly string[], setting: RunnerOptions): RunnerOptions {
  return { ...setting, settings: { ...setting.settings, nodePortAddresses: ranges } };
}

function withOneMore(addresses: typeof HOST_ADDRESSES): typeof HOST_ADDRESSES {
  return { IPv4: [...addresses.IPv4, "172.18.0.101"], IPv6: [...addresses.IPv6, "fd00:18::101"] };
}

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

/** A new row, and a new form of one that is in force, can't be programmed; a Service that comes later can. */
async function refuseRow(run: RecoveryRun): Promise<void> {
  const { host } = run.runner;
  const before = run.runner.world;
  const own = addressesOf(TROUBLED, "clusterIP");
  const refused = addressesOf(TROUBLED, "externalIP");
  host.refuse(FAMILIES.flatMap((family) => [own[family], refused[family]]));
  run.put(TROUBLED);
  run.put(1, { externalIPs: FAMILIES.map((family) => refused[family]) });
  await run.restart();
  run.checkpoint("the first sync of the new process");
  const isRefused = (await run.syncAndLook(before, before, WORKING)).some(({ error }) => error !== undefined);
  if (!isRefused) run.found("a sync with a row that the host refuses", "it says so", "it succeeds");
  run.checkpoint("a Service comes while the row is refused");
  run.put(LATER);
  await run.syncAndLook(before, { ...before, objects: [...before.objects, ...objectsOf(LATER)] }, [...WORKING, LATER]);
  run.checkpoint("Services of the same shape go while the row is refused");
  for (const number of [2, 3, LATER]) for (const ref of refs(nameOf(number))) run.runner.remove(ref);
  await run.runner.sync();
  run.judge(before, [1]);
  host.refuse([]);
  await run.recover([1, TROUBLED]);
}
