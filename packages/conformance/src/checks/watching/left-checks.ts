import { isEqual, objectId } from "@turnout/core";
import type { KernelObject, LeftObjects } from "@turnout/core";
import type { FamilyProcess } from "../../runner/family-process.ts";
import type { Runner } from "../../runner/runner.ts";
import type { Complain } from "../findings.ts";
import { WatchListener } from "./watch-listener.ts";

/** Longer than anything that looks by itself waits between two looks, and than a watch waits for the echo of our own changes. */
const REST_MS = 10_000;
/** How often the foreign hand is asked. */
const TRIES = 12;

type Held = ReadonlyMap<string, KernelObject>;

/**
 * Look whether what a backend says that a foreign change has left is what observing shows, and whether mending that alone makes everything right.
 *
 * Shape: for a player with one family whose rules are in force; false: its watch never said what was left.
 * Edges: of an object that it works out (and has not seen) it may say less than observing shows, as long as it takes what is changed for changed, and
 * nothing else: what is put anew is right whatever it was.
 */
export async function checkLeft(runner: Runner, complain: Complain, random: () => number): Promise<boolean> {
  const [life] = runner.processes;
  if (life === undefined || !life.watches) return false;
  const { host } = runner;
  const listener = new WatchListener(life);
  let hasReported = false;
  for (let tries = 0; tries < TRIES; tries++) {
    await host.advance(REST_MS);
    const [own, before] = [host.own(), await life.held()];
    const known = listener.drifts.length;
    const tampering = host.tamper(random);
    if (tampering === undefined || isEqual(host.own(), own) || before === undefined) continue;
    await host.advance(REST_MS);
    const reported = listener.drifts.slice(known).map(({ left }) => left);
    const left = reported.flatMap((one) => one ?? []);
    if (reported.length > 0 && left.length === reported.length) {
      hasReported = true;
      const notify: Complain = (what, expected, got) => complain(what, expected, got, [tampering]);
      if (!(await isRightlyLeft(life, before, left, notify)) || !(await isRepaired(runner, life, { own, left }, notify))) break;
    } else await fixAll(life);
  }
  listener.stop();
  await host.advance(REST_MS);
  return hasReported;
}

async function fixAll(life: FamilyProcess): Promise<void> {
  life.audit();
  await life.sync();
}

/** What was there before, with what each in turn says of it, is what is there now. */
async function isRightlyLeft(life: FamilyProcess, before: Held, left: readonly LeftObjects[], complain: Complain): Promise<boolean> {
  const now = await life.held();
  if (now === undefined) return true;
  const trusted = left.reduce<Held>(trusting, before);
  const isSeen = left.every((one) => one === "nothing" || "covers" in one);
  for (const id of new Set([...before.keys(), ...now.keys(), ...trusted.keys()])) {
    const [was, is, reported] = [before, now, trusted].map((held) => held.get(id)?.value);
    const isRight = isSeen ? isEqual(reported, is) : isEqual(reported, was) === isEqual(is, was);
    if (isRight) continue;
    complain("left of a foreign change", `what observe() says of ${id}: ${textOf(is)}`, textOf(reported));
    return false;
  }
  const isOld = left.some((one) => one !== "nothing" && "covers" in one && !one.isCurrent());
  if (isOld) complain("isCurrent() of what was seen, before anything is written", "true", "false");
  return !isOld;
}

/** As the ledger does. @source core, Ledger.believe */
function trusting(held: Held, left: LeftObjects): Held {
  if (left === "nothing") return new Map();
  if ("covers" in left) return new Map([...[...held].filter(([, object]) => !left.covers(object)), ...left.objects]);
  const trusted = new Map(held);
  for (const [id, whatIsLeft] of left) {
    const now = whatIsLeft(held.get(id));
    if (now === undefined) trusted.delete(id);
    else trusted.set(objectId(now), now);
  }
  return trusted;
}

/** Mending what was told makes everything right, and after that what was seen is old. */
async function isRepaired(
  { host }: Runner,
  life: FamilyProcess,
  { own, left }: { readonly own: readonly string[]; readonly left: readonly LeftObjects[] },
  complain: Complain,
): Promise<boolean> {
  for (const one of left) life.fix(one);
  const { put, removed, error } = await life.sync();
  await host.advance(REST_MS);
  const what = "a sync that mends what was left of a foreign change";
  if (error instanceof Error) complain(what, "it is mended", error.message);
  else if (!isEqual(host.own(), own)) complain(what, "everything as it was before", "something else");
  const stale = put + removed > 0 ? left.filter((one) => one !== "nothing" && "covers" in one && one.isCurrent()) : [];
  if (stale.length > 0) complain("isCurrent() of what was seen, once something was written since", "false", "true");
  return !(error instanceof Error) && isEqual(host.own(), own) && stale.length === 0;
}

function textOf(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}
