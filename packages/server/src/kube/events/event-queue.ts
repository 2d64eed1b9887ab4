import { hash } from "node:crypto";
import type { ProxyEvent } from "@turnout/client/daemon";
import { type Clock, type Log, wallMs } from "@turnout/core";
import { eventObject, sendEvent, type EventSender, type EventSource } from "./event-sending.ts";

/** Between two events about the same matter, in ms: what happens meanwhile is told by the last of it. */
const SAME_MATTER_MS = 60_000;
/** Between any two events, in ms. @source kube-proxy's client sends 5 requests a second */
const BETWEEN_MS = 200;
/** Matters that wait; further ones are left out. @source client-go v0.36.3 tools/events/event_broadcaster.go maxQueuedEvents */
const WAITING_MAX = 1_000;
/** Events of the cluster that one process sends in a minute: one change may concern thousands of Services, and each node sends what it makes of it. */
const OF_CLUSTER_MAX = 20;
/** All nodes hear of a change at once; they send what all of them send within this time, in ms. */
const SPREAD_MS = 10_000;

interface Waiting {
  readonly event: ProxyEvent;
  /** By the clock's `nowMs`. */
  readonly atMs: number;
  /** Not sent before, by the same. */
  readonly dueMs: number;
  readonly count: number;
}

/**
 * Events of a proxy that are to be sent, one after the other; about the same matter one a minute at most: of more the last one is sent, and says how many
 * there were, unless it is of the cluster.
 */
export class EventQueue {
  readonly #source: EventSource;
  readonly #clock: Clock;
  readonly #spreadMs: number;
  readonly #waiting = new Map<string, Waiting>();
  /** When an event about a matter was sent last, in ms; only of the last minute. */
  readonly #sentMs = new Map<string, number>();
  /** How many were sent. */
  #sent = 0;
  #leftOut = 0;
  /** When the minute began in which events of the cluster are counted, and how many there were. */
  #ofCluster = { fromMs: -Infinity, count: 0 };
  #isRefusalReported = false;
  #isRunning = false;
  #wake: () => void = () => undefined;
  #onIdle: (() => void)[] = [];

  constructor(source: EventSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
    this.#spreadMs = Number.parseInt(hash("sha256", source.hostname).slice(0, 8), 16) % SPREAD_MS;
  }

  /** Send something, soon. */
  put(event: ProxyEvent): void {
    const { reason, service, matter = "", isOfCluster } = event;
    const key = [reason, service?.namespace, service?.name, matter].join("/");
    const before = this.#waiting.get(key);
    const nowMs = this.#clock.nowMs();
    if (before === undefined && (this.#waiting.size >= WAITING_MAX || (isOfCluster === true && !this.#isWithinMinute(nowMs)))) {
      this.#leftOut++;
      return;
    }
    const dueMs = before?.dueMs ?? (isOfCluster === true ? nowMs + this.#spreadMs : nowMs);
    this.#waiting.set(key, { event, atMs: nowMs, dueMs, count: (before?.count ?? 0) + 1 });
    this.#wake();
  }

  #isWithinMinute(nowMs: number): boolean {
    if (nowMs - this.#ofCluster.fromMs >= SAME_MATTER_MS) this.#ofCluster = { fromMs: nowMs, count: 0 };
    this.#ofCluster.count++;
    return this.#ofCluster.count <= OF_CLUSTER_MAX;
  }

  /** Send what is put until `signal` aborts. Never rejects for what the server says or doesn't. */
  async run(sender: EventSender, log: Log, signal: AbortSignal): Promise<void> {
    this.#isRunning = true;
    while (!signal.aborted) {
      const next = this.#take();
      if (next === undefined) {
        this.#reportIdle();
        await this.#next(signal);
        continue;
      }
      await this.#send(next, sender, log, signal);
      if (this.#waiting.size === 0) this.#reportIdle();
      await this.#clock.sleep(BETWEEN_MS, signal);
    }
    this.#isRunning = false;
    this.#reportIdle();
  }

  /** Resolve when everything is sent that may be sent now, after `limitMs` at the latest; at once where nobody sends. */
  async flushed(limitMs: number): Promise<void> {
    if (!this.#isRunning) return;
    const done = new AbortController();
    this.#onIdle.push(() => done.abort());
    this.#wake();
    await this.#clock.sleep(limitMs, done.signal);
  }

  #reportIdle(): void {
    for (const notify of this.#onIdle.splice(0)) notify();
  }

  /** The first event that may be sent now. */
  #take(): Waiting | undefined {
    const nowMs = this.#clock.nowMs();
    for (const [key, sentMs] of this.#sentMs) if (nowMs - sentMs >= SAME_MATTER_MS) this.#sentMs.delete(key);
    for (const [key, waiting] of this.#waiting) {
      if (this.#sentMs.has(key) || waiting.dueMs > nowMs) continue;
      this.#waiting.delete(key);
      this.#sentMs.set(key, nowMs);
      return waiting;
    }
    return undefined;
  }

  async #send({ event, atMs, count }: Waiting, sender: EventSender, log: Log, signal: AbortSignal): Promise<void> {
    // First, because a long note is cut.
    const note =
      count === 1 || event.isOfCluster === true ? event.note : `${count} of these since the last event, the last one: ${event.note}`;
    // Names are made of it, and two events of one millisecond need two.
    const atNs = BigInt(Math.floor(wallMs(this.#clock, atMs))) * 1_000_000n + BigInt(this.#sent++ % 1_000_000);
    const error = await sendEvent(eventObject(this.#source, { ...event, note }, atNs), event.service?.namespace, sender, signal);
    if (signal.aborted) return;
    if (this.#leftOut > 0) log.info("too many events at once; some were left out", { count: this.#leftOut });
    this.#leftOut = 0;
    if (error !== undefined) {
      // What refuses one event refuses all: one line until one is written again.
      const notify = this.#isRefusalReported ? log.debug : log.info;
      notify.call(log, `the event ${event.reason} was not written; nothing depends on it`, { error: error.message });
    }
    this.#isRefusalReported = error !== undefined;
  }

  /** Wait for what is put, or until what waits may be sent. */
  async #next(signal: AbortSignal): Promise<void> {
    const put = new AbortController();
    this.#wake = (): void => put.abort();
    const dues = [...this.#waiting].map(([key, { dueMs }]) => Math.max(dueMs, (this.#sentMs.get(key) ?? -SAME_MATTER_MS) + SAME_MATTER_MS));
    const dueMs = Math.min(...dues);
    const waitMs = Math.min(dueMs - this.#clock.nowMs(), SAME_MATTER_MS);
    await this.#clock.sleep(waitMs, AbortSignal.any([signal, put.signal]));
    this.#wake = (): void => undefined;
  }
}
