import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as realSleep } from "node:timers/promises";
import { OBJECT_KINDS, type Clock, type Issue, type Log, type ObjectKind } from "@turnout/core";
import { onTestFinished } from "vitest";
import type { ObjectSink } from "../source/object-sink.ts";
import { isRawObject, keyOf, type RawObject } from "../source/raw-object.ts";

/** A sink for tests that remembers what it was told and lets a test wait for it. */
export class RecordingSink implements ObjectSink {
  /** `+Service shop/cart`, `-Service shop/cart`, `=Service` (synced), in order. */
  readonly calls: string[] = [];
  readonly objects: Map<string, RawObject> = new Map<string, RawObject>();
  readonly synced: Set<ObjectKind> = new Set<ObjectKind>();
  /** What is wrong now with what is read. */
  held: readonly Issue[] = [];
  readonly #waiting = new Set<() => void>();

  holdIssues(issues: readonly Issue[]): void {
    this.held = issues;
  }

  upsert(kind: ObjectKind, raw: unknown): void {
    if (!isRawObject(raw)) throw new Error("a source handed on something without a name");
    this.objects.set(`${kind} ${keyOf(raw)}`, raw);
    this.#record(`+${kind} ${keyOf(raw)}`);
  }

  remove(kind: ObjectKind, namespace: string, name: string): void {
    this.objects.delete(`${kind} ${namespace}/${name}`);
    this.#record(`-${kind} ${namespace}/${name}`);
  }

  markSynced(kind: ObjectKind): void {
    this.synced.add(kind);
    this.#record(`=${kind}`);
  }

  /** All four kinds are synced. */
  get isSynced(): boolean {
    return OBJECT_KINDS.every((kind) => this.synced.has(kind));
  }

  /** Wait until a call makes `isTrue` true; the test's own timeout bounds it. */
  async until(isTrue: (sink: RecordingSink) => boolean): Promise<void> {
    while (!isTrue(this)) {
      await new Promise<void>((resolve) => {
        this.#waiting.add(resolve);
      });
    }
  }

  /** Take the calls since the last time. */
  drain(): readonly string[] {
    return this.calls.splice(0);
  }

  #record(call: string): void {
    this.calls.push(call);
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

/** A real clock for tests that records the sleeps it is asked for and cuts them short at `capMs`. */
export class TestClock implements Clock {
  readonly sleeps: number[] = [];
  readonly #capMs: number;

  constructor(capMs: number = Infinity) {
    this.#capMs = capMs;
  }

  nowMs(): number {
    return Date.now();
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    this.sleeps.push(ms);
    await realSleep(Math.min(ms, this.#capMs), undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}

/** A clock for tests that stands still until it is moved. */
export class ManualClock implements Clock {
  /** How far the wall clock is ahead. */
  wallAheadMs = 0;
  #nowMs = 0;
  readonly #sleepers = new Set<() => void>();

  nowMs(): number {
    return this.#nowMs;
  }

  aheadMs(): number {
    return this.wallAheadMs;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    const endMs = this.#nowMs + ms;
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.#nowMs < endMs && !signal.aborted) return;
        this.#sleepers.delete(look);
        signal.removeEventListener("abort", look);
        resolve();
      };
      this.#sleepers.add(look);
      signal.addEventListener("abort", look);
      look();
    });
  }

  /** Let time pass and wake whoever has slept enough. */
  advance(ms: number): void {
    this.#nowMs += ms;
    for (const look of this.#sleepers) look();
  }
}

/** A log for tests that keeps its lines as `level message`, with the fields beside them. */
export class RecordingLog implements Log {
  readonly lines: { readonly line: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];

  debug(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ line: `debug ${message}`, fields });
  }

  info(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ line: `info ${message}`, fields });
  }

  warn(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ line: `warn ${message}`, fields });
  }

  error(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ line: `error ${message}`, fields });
  }

  /** Kinds whose feed failed, said or not. */
  failing(): ReadonlySet<string> {
    return new Set(this.lines.flatMap(({ line }) => /^(?:warn|debug) (\w+): (?:the feed failed|still failing)/.exec(line)?.[1] ?? []));
  }

  /** Lines of a level. */
  of(level: "debug" | "info" | "warn" | "error"): readonly string[] {
    return this.lines.map(({ line }) => line).filter((line) => line.startsWith(`${level} `));
  }
}

/** Wait until something that nobody announces is so; the test's own timeout bounds it. */
export async function eventually(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await realSleep(5);
}

/** Have something closed when the test ends. */
export function untilTestEnds<T extends { close(): unknown }>(one: T): T {
  onTestFinished(async () => void (await one.close()));
  return one;
}

/** Make a directory that is there until the test ends. */
export async function testDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-test-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}
