import type { Clock } from "@turnout/core";
import { EventQueue } from "../queue/event-queue.ts";

/** What a look at signs says: of each part of the host a text that is another one once somebody has changed that part. */
export type Signs = ReadonlyMap<string, string>;

/** Parts of which the signs have changed, each with both texts; undefined: there was, or is, none. */
export type SignChanges = ReadonlyMap<string, { readonly before: string | undefined; readonly now: string | undefined }>;

/** What watching signs takes. */
export interface SignWatchOptions {
  readonly clock: Clock;
  /** Look, as cheaply as the kernel allows. @throws {ProxyError} when that can't be done. */
  look(): Signs | Promise<Signs>;
  /** Looking takes milliseconds: it is not done before and after each write of ours, but after the next rest, and what is seen then counts as ours. */
  readonly isDear?: true;
}

/** So long there is between two looks at least, in ms. */
export const SIGN_LOOK_MS = 100;
const DEAR_LOOK_MS = 1_000;
/** Looking takes this share of the time at most, and where it is dear this one. */
const SHARE = 0.002;
const DEAR_SHARE = 0.001;
/** How much the last looks count in what a look is taken to cost. */
const WEIGHT = 0.125;
/** Findings that nobody has read yet before they become one. */
const UNREAD_MAX = 16;

/**
 * Looks often at what the kernel tells cheaply, such as how much a table holds, where it doesn't notify who changes something.
 *
 * Shape: what we write ourselves is looked at before and after it, so that only others' changes are told. Everybody who follows hears everything.
 * Edges: others' changes during a write of ours are not told, nor those that leave the signs as they were; comparing finds them.
 */
export class SignWatch {
  readonly #options: SignWatchOptions;
  readonly #followers = new Set<EventQueue<SignChanges>>();
  /** What was seen last; undefined: nobody follows. */
  #seen: Signs | undefined;
  #writing = 0;
  #writes = 0;
  /** Looks come one after another. */
  #turn: Promise<void> = Promise.resolve();
  #costMs = 0;
  /** Ends the looking when nobody follows any more. */
  #stop: AbortController | undefined;

  constructor(options: SignWatchOptions) {
    this.#options = options;
  }

  /** Write something of ours. @throws what `work` throws. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    if (this.#options.isDear !== true) await this.#look();
    this.#writing += 1;
    this.#writes += 1;
    try {
      return await work();
    } finally {
      this.#writing -= 1;
      if (this.#options.isDear === true) this.#seen = undefined;
      else if (this.#writing === 0) await this.#begin();
    }
  }

  /** A function that tells whether nothing of ours has been written, or begun, since this moment. */
  sinceNow(): () => boolean {
    const [isIdle, writes] = [this.#writing === 0, this.#writes];
    return () => isIdle && this.#writes === writes;
  }

  /** Hear of each change by others, until the signal aborts; an empty one says that too many came to be read. @throws {ProxyError} what looking fails with. */
  follow(signal: AbortSignal): AsyncIterable<SignChanges> {
    const leave = (): void => {
      signal.removeEventListener("abort", leave);
      queue.end();
      this.#followers.delete(queue);
      if (this.#followers.size === 0) this.#end();
    };
    const queue = new EventQueue<SignChanges>(UNREAD_MAX, new Map(), leave);
    if (signal.aborted) {
      queue.end();
      return queue;
    }
    signal.addEventListener("abort", leave, { once: true });
    this.#followers.add(queue);
    if (this.#stop === undefined) {
      this.#stop = new AbortController();
      void this.#begin();
      void this.#goOn(this.#stop.signal);
    }
    return queue;
  }

  async #goOn(signal: AbortSignal): Promise<void> {
    const { clock, isDear } = this.#options;
    const [leastMs, share] = isDear === true ? [DEAR_LOOK_MS, DEAR_SHARE] : [SIGN_LOOK_MS, SHARE];
    let lastMs = Number.POSITIVE_INFINITY;
    for (;;) {
      await clock.sleep(Math.max(leastMs, this.#costMs / share), signal);
      if (signal.aborted) return;
      const sinceMs = clock.nowMs();
      await this.#look();
      const tookMs = clock.nowMs() - sinceMs;
      // The cheaper of two: another program may have had the CPU meanwhile.
      this.#costMs += (Math.min(tookMs, lastMs) - this.#costMs) * WEIGHT;
      lastMs = tookMs;
    }
  }

  #end(): void {
    this.#stop?.abort();
    this.#stop = undefined;
    this.#seen = undefined;
  }

  /** What is seen now is ours. */
  async #begin(): Promise<void> {
    this.#seen = undefined;
    await this.#look();
  }

  /** Look, and tell what is otherwise than when it was looked at last. What was seen while we wrote counts for nothing. */
  #look(): Promise<void> {
    if (this.#followers.size === 0 || this.#writing > 0) return Promise.resolve();
    this.#turn = this.#turn.then(() => this.#lookInTurn());
    return this.#turn;
  }

  async #lookInTurn(): Promise<void> {
    const isCurrent = this.sinceNow();
    const now = await this.#tryToLook();
    const before = this.#seen;
    if (now === undefined || !isCurrent() || this.#followers.size === 0) return;
    this.#seen = now;
    const changes = before === undefined ? new Map() : changesBetween(before, now);
    if (changes.size > 0) for (const follower of this.#followers) follower.put(changes);
  }

  /** Undefined: it failed, as those hear who follow. */
  async #tryToLook(): Promise<Signs | undefined> {
    try {
      return await this.#options.look();
    } catch (error) {
      for (const follower of this.#followers) follower.fail(error);
      this.#followers.clear();
      this.#end();
      return undefined;
    }
  }
}

/** Say which signs have changed. Pure. */
export function changesBetween(before: Signs, now: Signs): SignChanges {
  const names = new Set([...before.keys(), ...now.keys()]);
  const changed = [...names].filter((name) => before.get(name) !== now.get(name));
  return new Map(changed.map((name) => [name, { before: before.get(name), now: now.get(name) }]));
}
