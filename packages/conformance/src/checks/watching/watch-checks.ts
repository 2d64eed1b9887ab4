import { isEqual } from "@turnout/core";
import type { FamilyProcess } from "../../runner/family-process.ts";
import type { Runner } from "../../runner/runner.ts";
import type { Complain } from "../findings.ts";
import { WatchListener } from "./watch-listener.ts";

/** Longer than anything that looks by itself waits between two looks. */
const REST_MS = 60_000;
/** How often the foreign hand is asked: not all it does need show. */
const TAMPER_TRIES = 20;

/**
 * Look whether what somebody else does to the backend's objects is noticed: because its `watch` tells, or because comparing shows it.
 *
 * Shape: for a player with one family whose rules are in force.
 * Edges: where nobody's hand reaches what is in force (a dataplane that lives in the process), only that `watch` goes on is looked at.
 */
export async function checkWatch(runner: Runner, complain: Complain, random: () => number): Promise<void> {
  const [life] = runner.processes;
  if (life === undefined) return;
  if (life.reportsDrift && !life.watches) complain("reportsDrift without watch()", "a watch() that tells", "there is none");
  const listener = new WatchListener(life);
  const { host } = runner;
  await host.advance(REST_MS);
  if (life.watches && listener.end !== undefined)
    complain("watch() while nothing happens", "it goes on until its signal aborts", listener.end);
  const before = host.own();
  const known = listener.drifts.length;
  const tampering = tamper(runner, random, before);
  if (tampering !== undefined) {
    await host.advance(REST_MS);
    if (life.reportsDrift && listener.end === undefined && listener.drifts.length === known)
      complain("watch() after somebody else changed what is in force", "drift", "nothing", [tampering]);
    await checkRepaired(runner, life, before, tampering, complain);
  }
  listener.stop();
  await host.advance(REST_MS);
  if (life.watches && listener.end === undefined) complain("watch() once its signal has aborted", "it ends", "it goes on");
}

/** What comparing everything doesn't see it can't mend. */
async function checkRepaired(
  runner: Runner,
  life: FamilyProcess,
  before: readonly string[],
  tampering: string,
  complain: Complain,
): Promise<void> {
  life.audit();
  const { error } = await life.sync();
  await runner.host.advance(REST_MS);
  const after = error === undefined ? runner.host.own() : before;
  if (error instanceof Error)
    complain("comparing everything after somebody else changed what is in force", "it is mended", error.message, [tampering]);
  else if (!isEqual(after, before))
    complain("comparing everything after somebody else changed what is in force", "it is mended", "it stays as it is", [tampering]);
}

/** Have somebody else change something that shows; undefined: nothing does. */
function tamper({ host }: Runner, random: () => number, before: readonly string[]): string | undefined {
  for (let tries = 0; tries < TAMPER_TRIES; tries++) {
    const tampering = host.tamper(random);
    if (tampering !== undefined && !isEqual(host.own(), before)) return tampering;
  }
  return undefined;
}
