import { isEqual } from "@turnout/core";
import type { FamilyProcess } from "../play/family-process.ts";
import type { Player } from "../play/player.ts";

/** Longer than anything that looks by itself waits between two looks. */
const REST_MS = 60_000;
/** How often the foreign hand is asked: not all it does need show. */
const TAMPER_TRIES = 20;

/** Takes what is wrong: what was tried, what should come of it, and what came. */
export type Complain = (what: string, expected: string, got: string, details?: readonly string[]) => void;

/**
 * Look whether what somebody else does to the backend's objects is noticed: because its `watch` tells, or because comparing shows it.
 *
 * Shape: for a player with one family whose rules are in force.
 * Edges: where nobody's hand reaches what is in force (a dataplane that lives in the process), only that `watch` goes on is looked at.
 */
export async function checkWatch(player: Player, complain: Complain, random: () => number): Promise<void> {
  const [life] = player.processes;
  if (life === undefined) return;
  if (life.tellsDrift && !life.watches) complain("tellsDrift without watch()", "a watch() that tells", "there is none");
  const ear = new Ear(life);
  const { host } = player;
  await host.advance(REST_MS);
  if (life.watches && ear.end !== undefined) complain("watch() while nothing happens", "it goes on until its signal aborts", ear.end);
  const before = host.own();
  const known = ear.drifts;
  const tampering = tamper(player, random, before);
  if (tampering !== undefined) {
    await host.advance(REST_MS);
    if (life.tellsDrift && ear.end === undefined && ear.drifts === known)
      complain("watch() after somebody else changed what is in force", "drift", "nothing", [tampering]);
    await checkMended(player, life, before, tampering, complain);
  }
  ear.stop();
  await host.advance(REST_MS);
  if (life.watches && ear.end === undefined) complain("watch() once its signal has aborted", "it ends", "it goes on");
}

/** What comparing everything doesn't see it can't mend. */
async function checkMended(
  player: Player,
  life: FamilyProcess,
  before: readonly string[],
  tampering: string,
  complain: Complain,
): Promise<void> {
  life.audit();
  const { error } = await life.sync();
  await player.host.advance(REST_MS);
  const after = error === undefined ? player.host.own() : before;
  if (error instanceof Error)
    complain("comparing everything after somebody else changed what is in force", "it is mended", error.message, [tampering]);
  else if (!isEqual(after, before))
    complain("comparing everything after somebody else changed what is in force", "it is mended", "it stays as it is", [tampering]);
}

/** Have somebody else change something that shows; undefined: nothing does. */
function tamper({ host }: Player, random: () => number, before: readonly string[]): string | undefined {
  for (let tries = 0; tries < TAMPER_TRIES; tries++) {
    const tampering = host.tamper(random);
    if (tampering !== undefined && !isEqual(host.own(), before)) return tampering;
  }
  return undefined;
}

/** Listens to what a backend's watch tells. */
class Ear {
  drifts = 0;
  /** How it ended; undefined: it goes on. */
  end: string | undefined;
  readonly #life = new AbortController();

  constructor(life: FamilyProcess) {
    void this.#listen(life);
  }

  stop(): void {
    this.#life.abort();
  }

  async #listen(life: FamilyProcess): Promise<void> {
    try {
      for await (const { kind } of life.watch(this.#life.signal)) if (kind === "drift") this.drifts++;
      this.end = "it ended";
    } catch (error) {
      this.end = `it threw: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
}
