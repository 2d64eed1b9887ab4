import { workMs } from "@turnout/core";
import type { Clock } from "@turnout/core";
import { EventQueue } from "../queue/event-queue.ts";

/** What a look at signs says: of each part of the host a text that is another one once somebody has changed that part. */
export type Fingerprints = ReadonlyMap<string, string>;

/** Parts of which the signs have changed, each with both texts; undefined: there was, or is, none. */
export type FingerprintChanges = ReadonlyMap<string, { readonly before: string | undefined; readonly now: string | undefined }>;

/** What watching signs takes. */
export interface FingerprintWatchOptions {
  readonly clock: Clock;
  /** Look, as cheaply as the kernel allows. @throws {ProxyError} when that can't be done. */
  look(): Fingerprints | Promise<Fingerprints>;
  /**
   * Looking takes milliseconds: it is not done before and after each write of ours, but after the next rest, and what is seen then of what we wrote
   * counts as ours, unless something else was changed, too: then another program may have changed both.
   */
  readonly isExpensive?: true;
  /** Looking takes this share of a core at most; default 0.002. */
  readonly share?: number;
  /** Hears of each change as it is told. */
  readonly onReported?: (changes: FingerprintChanges) => void;
  /** Done before a change is told: what is forgotten meanwhile isn't told. */
  readonly beforeReporting?: () => Promise<void>;
  /**
   * Whether what is seen right after a write of ours can't be ours alone, such as no virtual servers at all where there were some: then the changes
   * since before the write are reported. Where looks are cheap only; default: never.
   */
  readonly isSuspicious?: (now: Fingerprints, before: Fingerprints) => boolean;
}

/** So long there is between two looks at least, in ms. */
export const FINGERPRINT_POLL_MS = 100;
const SHARE = 0.002;
/** Where somebody may be at work, looking takes up to this share of a core, for so long, in ms. */
const HURRIED_SHARE = 0.05;
const HURRY_MS = 5_000;
/** How much the last look counts in what a look is taken to cost, where it was dearer, and where it was cheaper. */
const DEARER_WEIGHT = 0.125;
const CHEAPER_WEIGHT = 0.5;
/** A rest is so much longer than the one before at most: a process that is busy, as at its start, makes looks seem dear. */
const GROWTH = 2;
const NO_CHANGES: FingerprintChanges = new Map();
/** Findings that nobody has read yet before they become one. */
const UNREAD_MAX = 16;

/**
 * Looks often at what the kernel tells cheaply, such as how much a table holds, where it doesn't notify who changes something.
 *
 * Shape: what we write ourselves is looked at before and after it, so that only others' changes are told. Everybody who follows hears everything.
 * A look is followed by a rest in proportion to the CPU time that it took, so a busy machine doesn't make looks rarer.
 * Edges: others' changes during a write of ours are reported only where what is seen then is suspicious; comparing finds the others, and those that
 * leave the fingerprints as they were. Where looking is
 * dear, what a write of ours concerns is reported only together with other changes until the next look but one.
 */
export class FingerprintWatch {
  readonly #options: FingerprintWatchOptions;
  readonly #followers = new Set<EventQueue<FingerprintChanges>>();
  /** What was seen last; undefined: nobody follows. */
  #seen: Fingerprints | undefined;
  /** What was seen last before a write of ours. */
  #seenBeforeWrite: Fingerprints | undefined;
  /** Of these nothing is told at the next look that counts. */
  readonly #forgotten = new Set<string>();
  /** These we have written since the last look that counts. */
  readonly #written = new Set<string>();
  #writing = 0;
  #writes = 0;
  /** Looks come one after another. */
  #turn: Promise<void> = Promise.resolve();
  #costMs = 0;
  /** Ends the looking when nobody follows any more. */
  #stop: AbortController | undefined;
  /** Ends the rest between two looks. */
  #wake: AbortController | undefined;
  #hurriedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: FingerprintWatchOptions) {
    this.#options = options;
  }

  /**
   * Write something of ours.
   *
   * @param parts which signs it can change; undefined: any. Only where looking is dear it matters.
   * @throws what `work` throws.
   */
  async during<T>(work: () => Promise<T>, parts?: Iterable<string>): Promise<T> {
    if (this.#options.isExpensive !== true) await this.look();
    this.#writing += 1;
    this.#writes += 1;
    try {
      return await work();
    } finally {
      this.#writing -= 1;
      if (this.#options.isExpensive === true) {
        if (parts === undefined) this.forget(undefined);
        else for (const sign of parts) this.#written.add(sign);
      } else if (this.#writing === 0) await this.#begin();
    }
  }

  /** What is seen next of these signs is not told; undefined: of any. */
  forget(fingerprints: Iterable<string> | undefined): void {
    if (fingerprints === undefined) this.#seen = undefined;
    else for (const sign of fingerprints) this.#forgotten.add(sign);
  }

  /**
   * Somebody may be changing something: look at once, and for some seconds as often as a twentieth of a core allows.
   *
   * Edges: asked for again meanwhile it goes on for longer, and doesn't look more often.
   */
  hurry(): void {
    const nowMs = this.#options.clock.nowMs();
    const isHurried = nowMs < this.#hurriedUntilMs;
    this.#hurriedUntilMs = nowMs + HURRY_MS;
    if (!isHurried) this.#wake?.abort();
  }

  /** A function that tells whether nothing of ours has been written, or begun, since this moment. */
  sinceNow(): () => boolean {
    const [isIdle, writes] = [this.#writing === 0, this.#writes];
    return () => isIdle && this.#writes === writes;
  }

  /** Hear of each change by others, until the signal aborts; an empty one says that too many came to be read. @throws {ProxyError} what looking fails with. */
  follow(signal: AbortSignal): AsyncIterable<FingerprintChanges> {
    const leave = (): void => {
      signal.removeEventListener("abort", leave);
      queue.end();
      this.#followers.delete(queue);
      if (this.#followers.size === 0) this.#end();
    };
    const queue = new EventQueue<FingerprintChanges>(UNREAD_MAX, new Map(), leave);
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
    const { clock } = this.#options;
    let lastMs = Number.POSITIVE_INFINITY;
    for (;;) {
      await this.#rest(signal);
      if (signal.aborted) return;
      const sinceMs = workMs(clock);
      await this.look();
      const tookMs = workMs(clock) - sinceMs;
      // The cheaper of two: the process may have done something else meanwhile.
      this.#reckon(Math.min(tookMs, lastMs));
      lastMs = tookMs;
    }
  }

  #reckon(tookMs: number): void {
    const { share = SHARE } = this.#options;
    const reckonedMs = this.#costMs + (tookMs - this.#costMs) * (tookMs > this.#costMs ? DEARER_WEIGHT : CHEAPER_WEIGHT);
    this.#costMs = Math.min(reckonedMs, Math.max(this.#costMs, FINGERPRINT_POLL_MS * share) * GROWTH);
  }

  async #rest(signal: AbortSignal): Promise<void> {
    const { clock, share = SHARE } = this.#options;
    if (signal.aborted) return;
    const wake = new AbortController();
    const end = (): void => wake.abort();
    signal.addEventListener("abort", end, { once: true });
    this.#wake = wake;
    const current = clock.nowMs() < this.#hurriedUntilMs ? Math.max(share, HURRIED_SHARE) : share;
    await clock.sleep(Math.max(FINGERPRINT_POLL_MS, this.#costMs / current), wake.signal);
    this.#wake = undefined;
    signal.removeEventListener("abort", end);
  }

  #end(): void {
    this.#stop?.abort();
    this.#stop = undefined;
    this.#seen = undefined;
    this.#seenBeforeWrite = undefined;
  }

  /** What is seen now is ours, unless it is suspicious. */
  async #begin(): Promise<void> {
    this.#seenBeforeWrite = this.#seen ?? this.#seenBeforeWrite;
    this.#seen = undefined;
    await this.look();
  }

  /** Look now, and tell what is otherwise than when it was looked at last. What was seen while we wrote counts for nothing. */
  look(): Promise<void> {
    if (this.#followers.size === 0 || this.#writing > 0) return Promise.resolve();
    this.#turn = this.#turn.then(() => this.#lookInTurn());
    return this.#turn;
  }

  async #lookInTurn(): Promise<void> {
    const { beforeReporting, onReported } = this.#options;
    const isCurrent = this.sinceNow();
    const now = await this.#tryToLook();
    if (now !== undefined && this.#untold(now).size > 0) await beforeReporting?.();
    if (now === undefined || !isCurrent() || this.#followers.size === 0) return;
    const changes = this.#untold(now);
    this.#seen = now;
    this.#seenBeforeWrite = undefined;
    this.#forgotten.clear();
    this.#written.clear();
    if (changes.size === 0) return;
    onReported?.(changes);
    for (const follower of this.#followers) follower.put(changes);
  }

  #untold(now: Fingerprints): FingerprintChanges {
    const before = this.#seenBeforeWrite;
    const isSuspicious = before !== undefined && this.#options.isSuspicious?.(now, before) === true;
    const seen = this.#seen ?? (isSuspicious ? before : undefined);
    const changes: FingerprintChanges = seen === undefined ? NO_CHANGES : changesBetween(seen, now);
    const untold = this.#forgotten.size === 0 ? changes : new Map([...changes].filter(([sign]) => !this.#forgotten.has(sign)));
    return [...untold.keys()].every((sign) => this.#written.has(sign)) ? NO_CHANGES : untold;
  }

  /** Undefined: it failed, as those hear who follow. */
  async #tryToLook(): Promise<Fingerprints | undefined> {
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
export function changesBetween(before: Fingerprints, now: Fingerprints): FingerprintChanges {
  if (isSame(before, now)) return new Map();
  const names = new Set([...before.keys(), ...now.keys()]);
  const changed = [...names].filter((name) => before.get(name) !== now.get(name));
  return new Map(changed.map((name) => [name, { before: before.get(name), now: now.get(name) }]));
}

/** Most looks end here, many times a second, so it makes no garbage. */
function isSame(before: Fingerprints, now: Fingerprints): boolean {
  if (before.size !== now.size) return false;
  for (const name of now.keys()) if (before.get(name) !== now.get(name)) return false;
  return true;
}
