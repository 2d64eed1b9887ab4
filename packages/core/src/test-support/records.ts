import { Waiters } from "../model/waiters.ts";
import { ProxyError } from "../model/errors.ts";
import type { ChangeSet, Feed } from "../model/rows.ts";
import type { FailedEvent, SyncedEvent, SyncObserver } from "../sync/observer.ts";

/** An observer that keeps what it hears. */
export class RecordingObserver implements SyncObserver {
  readonly syncs: SyncedEvent[] = [];
  readonly failures: FailedEvent[] = [];
  readonly quarantines: (readonly string[])[] = [];
  forgotten = 0;
  queuedCount = 0;

  queued(): void {
    this.queuedCount++;
  }

  synced(event: SyncedEvent): void {
    this.syncs.push(event);
  }

  failed(event: FailedEvent): void {
    this.failures.push(event);
  }

  flowsForgotten({ count }: { readonly count: number }): void {
    this.forgotten += count;
  }

  quarantined({ rows }: { readonly rows: readonly string[] }): void {
    this.quarantines.push(rows);
  }
}

/** A feed whose change sets (or loss) a test hands over; they are given out one by one, unmerged. */
export class ScriptedFeed implements Feed {
  readonly #items: (ChangeSet | ProxyError)[] = [];
  readonly #waiters = new Waiters();
  /** How often somebody asked. */
  asked = 0;

  /** Have the next call resolve with a change set or reject with an error. */
  push(item: ChangeSet | ProxyError): void {
    this.#items.push(item);
    this.#waiters.resolve();
  }

  async next(signal: AbortSignal): Promise<ChangeSet> {
    this.asked++;
    while (this.#items.length === 0) {
      if (signal.aborted) throw new ProxyError("canceled", "the scripted feed was stopped");
      await this.#waiters.wait(signal);
    }
    const item = this.#items.shift() as ChangeSet | ProxyError;
    if (ProxyError.is(item)) throw item;
    return item;
  }
}
