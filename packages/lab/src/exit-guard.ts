/** Something that goes when this process goes. */
export interface ExitGuard {
  /** Remove it now, once. @throws whatever removing throws. */
  remove(): void;
}

const SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];
const guarded = new Set<ExitGuard>();

/**
 * See to it that something is removed when this process exits or is asked to end by SIGINT, SIGTERM or SIGHUP.
 * Edges: SIGKILL can't be caught; the next cluster of any process sweeps up.
 */
export function guardUntilExit(remove: () => void): ExitGuard {
  const guard: ExitGuard = {
    remove: () => {
      if (!guarded.delete(guard)) return;
      if (guarded.size === 0) unhook();
      remove();
    },
  };
  if (guarded.size === 0) hook();
  guarded.add(guard);
  return guard;
}

function hook(): void {
  process.on("exit", removeAll);
  for (const signal of SIGNALS) process.on(signal, onSignal);
}

function unhook(): void {
  process.removeListener("exit", removeAll);
  for (const signal of SIGNALS) process.removeListener(signal, onSignal);
}

function removeAll(): void {
  for (const guard of guarded) guard.remove();
}

function onSignal(signal: NodeJS.Signals): void {
  removeAll();
  // Our listeners are gone now: if nobody else listens, the signal does what it would have done without us.
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
}
