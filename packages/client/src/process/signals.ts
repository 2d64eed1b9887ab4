/** What of a process {@link terminationSignal} needs. */
export interface SignalSource {
  on(event: "SIGTERM" | "SIGINT" | "SIGHUP", listener: () => void): unknown;
  exit(code: number): void;
}

const FORCED_EXIT = 130;

/**
 * Get a signal that aborts on the first SIGTERM, SIGINT or SIGHUP; the second one ends the process at once.
 *
 * Edges: SIGHUP is a terminal that went away; without us it would end a demo and leave its namespaces behind. Node resets an
 * ignored SIGHUP to its default when it starts, so `nohup` does not help against it, with or without this.
 */
export function terminationSignal(source: SignalSource): AbortSignal {
  const controller = new AbortController();
  const end = (): void => {
    if (controller.signal.aborted) source.exit(FORCED_EXIT);
    controller.abort();
  };
  source.on("SIGTERM", end);
  source.on("SIGINT", end);
  source.on("SIGHUP", end);
  return controller.signal;
}
