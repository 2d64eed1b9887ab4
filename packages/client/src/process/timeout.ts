import { ProxyError, type Clock } from "@turnout/core";

/**
 * Run `body` with a limit on its time.
 *
 * Shape: `hintNow` says, when the limit is reached, what is known of the reason by then; undefined: nothing.
 * @throws {ProxyError} `timed_out` when the limit is reached first, with what `body` fails with then, or naming `what`.
 */
export async function withTimeout(
  what: string,
  ms: number,
  clock: Clock,
  signal: AbortSignal,
  body: (signal: AbortSignal) => Promise<void>,
  hintNow?: () => string | undefined,
): Promise<void> {
  const error = (cause?: unknown): ProxyError => {
    if (ProxyError.is(cause) && cause.code !== "canceled")
      return new ProxyError("timed_out", `not done within ${ms / 1000} s`, {
        object: cause.message,
        hint: "--timeout waits longer",
        cause,
      });
    return new ProxyError("timed_out", `nothing complete within ${ms / 1000} s`, {
      object: what,
      hint: hintNow?.() ?? "is it reachable? -v shows more; --timeout waits longer",
      cause,
    });
  };
  const late = new AbortController();
  const done = new AbortController();
  const watchClock = async (): Promise<void> => {
    await clock.sleep(ms, AbortSignal.any([signal, done.signal]));
    if (!done.signal.aborted && !signal.aborted) late.abort();
  };
  const timer = watchClock();
  try {
    await body(AbortSignal.any([signal, late.signal]));
  } catch (cause) {
    throw late.signal.aborted ? error(cause) : cause;
  } finally {
    done.abort();
    await timer;
  }
  if (late.signal.aborted) throw error();
}
