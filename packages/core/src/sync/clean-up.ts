import type { Backend, KernelObject } from "../contract/backend.ts";
import { demandObserved, demandOutcome } from "../contract/check-module.ts";
import type { Clock } from "../contract/world.ts";
import { ProxyError } from "../model/errors.ts";
import { Ledger } from "./ledger.ts";

/** How long cleaning up waits for what lingers, in ms. */
const LINGER_MS = 10_000;
/** What is due at once is looked at again after this long, in ms, however often that is said of it. */
const POLL_MS = 100;
/** Objects that an error names. */
const NAMED_MAX = 3;

/**
 * Remove everything of a backend's from the host: as it does so itself, or else whatever it observes.
 *
 * Edges: what is deferred is planned again at once, and what lingers when it is due, for up to ten seconds.
 * @throws {ProxyError} what it fails with, the first refusal of an object too; `tool_failed` where it can't tell what is there; `timed_out` where
 * something is left; `canceled`.
 */
export async function cleanUpBackend<H, K extends KernelObject, S>(
  backend: Backend<H, K, S>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  if (backend.cleanup !== undefined) return await backend.cleanup(signal);
  const observed = await backend.observe(signal);
  demandObserved(observed);
  if (observed === undefined) throw new ProxyError("tool_failed", "the backend can't tell what is on the host");
  const ledger = new Ledger<K>();
  ledger.adopt(observed);
  const untilMs = clock.nowMs() + LINGER_MS;
  let left = Number.POSITIVE_INFINITY;
  for (;;) {
    const delta = ledger.delta(clock.nowMs());
    if (delta.remove.length + delta.lingering.length > 0) {
      const outcome = await backend.apply(backend.plan(delta), signal);
      demandOutcome(outcome, delta);
      for (const error of outcome.failed?.values() ?? []) throw error;
      ledger.commit(delta, outcome, clock.nowMs());
    }
    const { deferred, lingeringDueMs } = ledger;
    if (deferred.size > 0 && deferred.size < left) {
      left = deferred.size;
      continue;
    }
    if (deferred.size === 0 && lingeringDueMs === Number.POSITIVE_INFINITY) return;
    if (deferred.size > 0 || lingeringDueMs > untilMs) throw leftError([...deferred, ...ledger.lingering]);
    await clock.sleep(Math.max(POLL_MS, lingeringDueMs - clock.nowMs()), signal);
    if (signal.aborted) throw new ProxyError("canceled", "cleaning up was stopped", { cause: signal.reason });
  }
}

function leftError(ids: readonly string[]): ProxyError {
  return new ProxyError("timed_out", "cleaning up is not done", {
    object: `${ids.slice(0, NAMED_MAX).join(", ")}${ids.length > NAMED_MAX ? ` and ${ids.length - NAMED_MAX} more` : ""}`,
    hint: "it is in use, or there was no time for it; clean up again later",
  });
}
