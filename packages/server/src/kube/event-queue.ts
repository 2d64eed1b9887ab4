import { sendEvent, type EventSender, type EventSource, type NodeEvent } from "./node-events.ts";

/** Between two events, in ms: what happens meanwhile is told by the last of it. */
const BETWEEN_MS = 60_000;

/** Events about a Node that are to be told, one a minute at most: of more the last one is told, with how many there were. */
export class NodeEventQueue {
  #waiting: { readonly event: NodeEvent; readonly count: number } | undefined;
  #wake: () => void = () => undefined;

  /** Tell something, soon. */
  put(event: NodeEvent): void {
    this.#waiting = { event, count: (this.#waiting?.count ?? 0) + 1 };
    this.#wake();
  }

  /** Send what is put until `signal` aborts. Never rejects for what the server says. */
  async run(source: EventSource, sender: EventSender, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      if (waiting === undefined) {
        await this.#next(signal);
        continue;
      }
      const { event, count } = waiting;
      const note = count === 1 ? event.note : `${event.note} (the last of ${count} within a minute)`;
      await sendEvent(source, { ...event, note }, sender, signal);
      await sender.clock.sleep(BETWEEN_MS, signal);
    }
  }

  async #next(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#wake = (): void => undefined;
  }
}
