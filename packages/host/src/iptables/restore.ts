import { ProxyError } from "@turnout/core";
import type { Clock, Exec, ExecResult } from "@turnout/core";
import { iptablesError, isLockHeld } from "./errors.ts";

/** How long one try waits in the queue for the lock, in the tool's own grain of seconds. */
const TRY_SECONDS = 1;
/** Between two tries, in ms: up to twice this, so that several who wait don't come back together. */
const PAUSE_MS = 50;
/** Somebody who holds the lock this long has hung. */
const PATIENCE_MS = 30_000;
/** The nft variant needs tens of seconds for a hundred thousand lines. */
const RUN_TIMEOUT_MS = 600_000;

/**
 * Input up to this size is with the tool at once, in one write. More comes as the tool reads, and then a short wait is a trap: the alarm that
 * iptables-legacy 1.8.9 sets for it goes on after the lock is there, and ends the input wherever it finds it dry ("COMMIT expected at line …").
 */
const AT_ONCE_BYTES = 32_768;

/** What running a tool that takes the xtables lock needs. */
export interface LockedRun {
  readonly exec: Exec;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** Told once of a run that somebody else's lock kept waiting, however it ended: how long refused tries and pauses took, in ms. */
  readonly waited: (ms: number) => void;
}

/**
 * Run an iptables tool, waiting for the xtables lock: a second in its queue, then again after a random pause.
 *
 * Edges: the nft variant takes no lock and never waits. With much input it stays in the queue, as long as a run may take, and `waited` is not
 * told. A non-zero exit for any other reason is a result.
 * @throws {ProxyError} `timed_out` when somebody held the lock for half a minute; what `Exec.run` throws.
 */
export async function runLocked(
  file: string,
  args: readonly string[],
  { exec, clock, random, signal, waited }: LockedRun,
  input?: string,
): Promise<ExecResult> {
  const startMs = clock.nowMs();
  const options = { signal, timeoutMs: RUN_TIMEOUT_MS, ...(input === undefined ? {} : { input }) };
  const isMuch = input !== undefined && Buffer.byteLength(input) > AT_ONCE_BYTES;
  const seconds = isMuch ? RUN_TIMEOUT_MS / 1000 : TRY_SECONDS;
  let waitedMs = 0;
  try {
    for (;;) {
      const result = await exec.run(file, ["-w", String(seconds), ...args], options);
      if (!isLockHeld(result.code, result.stderr)) return result;
      waitedMs = clock.nowMs() - startMs;
      if (waitedMs >= PATIENCE_MS) {
        throw new ProxyError("timed_out", "another program holds the xtables lock", {
          object: `${file}, for ${Math.round(waitedMs / 1000)} s`,
          hint: "see who: lslocks | grep xtables",
        });
      }
      await clock.sleep(PAUSE_MS * (1 + random()), signal);
      waitedMs = clock.nowMs() - startMs;
      if (signal.aborted) throw new ProxyError("canceled", "waiting for the xtables lock was given up", { object: file });
    }
  } finally {
    if (waitedMs > 0) waited(waitedMs);
  }
}

/**
 * Give `input` to an `iptables-restore` program, leaving everything it doesn't name as it is.
 *
 * Edges: each table takes effect as a whole at its COMMIT; when a later one fails the earlier ones are in force.
 * @throws {ProxyError} what the tool complained about, or as {@link runLocked}.
 */
export async function restoreIptables(restore: string, input: string, run: LockedRun): Promise<ExecResult> {
  const result = await runLocked(restore, ["--noflush"], run, input);
  if (result.code !== 0) throw iptablesError(result.stderr, "apply a change", input);
  return result;
}
