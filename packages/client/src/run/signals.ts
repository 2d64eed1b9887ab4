/** What of a process {@link terminationSignal} needs. */
export interface SignalSource {
  on(event: "SIGTERM" | "SIGINT", listener: () => void): unknown;
  exit(code: number): void;
}

const FORCED_EXIT = 130;

/** Get a signal that aborts on the first SIGTERM or SIGINT; the second one ends the process at once. */
export function terminationSignal(source: SignalSource): AbortSignal {
  const controller = new AbortController();
  const end = (): void => {
    if (controller.signal.aborted) source.exit(FORCED_EXIT);
    controller.abort();
  };
  source.on("SIGTERM", end);
  source.on("SIGINT", end);
  return controller.signal;
}
