import { removeNamespaces } from "./namespaces.ts";

/** Namespaces that go when this process goes. */
export interface NamespaceGuard {
  /** Remove them now, once. @throws {ProxyError} as {@link removeNamespaces}. */
  remove(): void;
}

const SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];
const guarded = new Set<NamespaceGuard>();

/**
 * See to it that namespaces are removed when this process exits or is asked to end by SIGINT, SIGTERM or SIGHUP.
 * Edges: SIGKILL can't be caught; the next cluster of any process sweeps up.
 */
export function guardNamespaces(names: readonly string[]): NamespaceGuard {
  const guard: NamespaceGuard = {
    remove: () => {
      if (!guarded.delete(guard)) return;
      if (guarded.size === 0) unhook();
      removeNamespaces(names);
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
