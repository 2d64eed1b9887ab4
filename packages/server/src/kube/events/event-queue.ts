import { hash } from "node:crypto";
import type { ProxyEvent } from "@turnout/client/daemon";
import { type Clock, type Log, type ServiceIdentity, wallMs } from "@turnout/core";
import { eventObject, sendEvent, type EventSender, type EventSource } from "./event-sending.ts";

/** Between two events about the same matter, in ms: what happens meanwhile is told by the last of it. */
const SAME_MATTER_MS = 60_000;
/** Between any two events, in ms. @source kube-proxy's client sends 5 requests a second */
const BETWEEN_MS = 200;
/** Matters that wait; of further ones the namespace goes without that has most. @source client-go v0.36.3 tools/events/event_broadcaster.go maxQueuedEvents */
const WAITING_MAX = 1_000;
/** Events of the cluster that one process sends in a minute; others wait. One change may concern thousands of Services, and each node sends the same. */
const OF_CLUSTER_MAX = 20;
/** One that another node had written counts as so many: in a large cluster nearly all of them are, and each costs the API server a request. */
const WRITTEN_COST = 10;
/** How long the API server keeps events, in ms; meanwhile an event of the cluster is not sent again. @source kube-apiserver --event-ttl */
const KEPT_MS = 3_600_000;
/** All nodes hear of a change at once; they send what all of them send within this time, in ms. */
const SPREAD_MS = 10_000;

interface Waiting {
  readonly event: ProxyEvent;
  /** By the clock's `nowMs`. */
  readonly atMs: number;
  /** Not sent before, by the same. */
  readonly dueMs: number;
  readonly count: number;
  /** Of the Service, when the event was made; undefined: it wasn't known yet. */
  readonly identity: ServiceIdentity | undefined;
}

/** Tells which Service is called `namespace/name` now; undefined: none is. */
export type Identify = (service: string) => ServiceIdentity | undefined;

/**
 * Sends the events of a proxy, one after the other, the namespaces in turn: a namespace with many events delays no other by more than one event. About the
 * same matter one a minute is sent: of more the last one, which says how many there were, unless it is of the cluster. Events of the cluster about
 * Services that are gone are not sent.
 */
export class EventQueue {
  readonly #source: EventSource;
  readonly #clock: Clock;
  readonly #identify: Identify;
  readonly #spreadMs: number;
  /** By namespace, "" for the Node, and by matter; the namespace whose turn is next comes first. */
  readonly #waiting = new Map<string, Map<string, Waiting>>();
  #waitingCount = 0;
  /** When an event about a matter was sent last, in ms; only of the last minute. */
  readonly #sentMs = new Map<string, number>();
  /** When events of the cluster were sent, in ms; only of the last hour. */
  readonly #ofClusterMs = new Map<string, number>();
  /** How many were sent. */
  #sent = 0;
  #leftOut = 0;
  /** When the minute began in which events of the cluster are counted, and how many there were. */
  #ofCluster = { fromMs: -Infinity, count: 0 };
  #isRefusalReported = false;
  #isRunning = false;
  #wake: () => void = () => undefined;
  #onIdle: (() => void)[] = [];

  constructor(source: EventSource, clock: Clock, identify: Identify) {
    this.#source = source;
    this.#identify = identify;
    this.#clock = clock;
    this.#spreadMs = Number.parseInt(hash("sha256", source.hostname).slice(0, 8), 16) % SPREAD_MS;
  }

  /** Send something, soon. */
  put(event: ProxyEvent): void {
    const { reason, service, matter = "", isOfCluster } = event;
    const namespace = service?.namespace ?? "";
    const key = [reason, namespace, service?.name, matter].join("/");
    const before = this.#waiting.get(namespace)?.get(key);
    const nowMs = this.#clock.nowMs();
    if (before === undefined && this.#waitingCount >= WAITING_MAX && !this.#makePlace(namespace)) return;
    const dueMs = before?.dueMs ?? (isOfCluster === true ? nowMs + this.#spreadMs : nowMs);
    const identity = service && this.#identify(`${namespace}/${service.name}`);
    const ofNamespace = this.#waiting.get(namespace) ?? new Map<string, Waiting>();
    ofNamespace.set(key, { event, atMs: nowMs, dueMs, count: (before?.count ?? 0) + 1, identity });
    this.#waiting.set(namespace, ofNamespace);
    if (before === undefined) this.#waitingCount++;
    this.#wake();
  }

  /** Leave out the newest event of the namespace that has most; says whether that makes place for this one. */
  #makePlace(namespace: string): boolean {
    this.#leftOut++;
    const [most, waiting] = [...this.#waiting].reduce((first, next) => (next[1].size > first[1].size ? next : first));
    const last = [...waiting.keys()].at(-1);
    if (most === namespace || last === undefined) return false;
    this.#drop(most, last);
    return true;
  }

  #drop(namespace: string, key: string): void {
    const waiting = this.#waiting.get(namespace);
    if (waiting?.delete(key) === true) this.#waitingCount--;
    if (waiting?.size === 0) this.#waiting.delete(namespace);
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
      if (this.#waitingCount === 0) this.#reportIdle();
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

  /** The first event that may be sent now; its namespace is the last one then. */
  #take(): Waiting | undefined {
    const nowMs = this.#clock.nowMs();
    for (const [key, sentMs] of this.#sentMs) if (nowMs - sentMs >= SAME_MATTER_MS) this.#sentMs.delete(key);
    for (const [key, sentMs] of this.#ofClusterMs) if (nowMs - sentMs >= KEPT_MS) this.#ofClusterMs.delete(key);
    if (nowMs - this.#ofCluster.fromMs >= SAME_MATTER_MS) this.#ofCluster = { fromMs: nowMs, count: 0 };
    for (const [namespace, ofNamespace] of this.#waiting)
      for (const [key, waiting] of ofNamespace) {
        if (this.#dueMs(key, waiting) > nowMs) continue;
        this.#drop(namespace, key);
        if (this.#waiting.delete(namespace)) this.#waiting.set(namespace, ofNamespace);
        this.#sentMs.set(key, nowMs);
        return waiting;
      }
    return undefined;
  }

  /** When an event may be sent. */
  #dueMs(key: string, { dueMs, event }: Waiting): number {
    const { fromMs, count } = this.#ofCluster;
    const budgetMs = event.isOfCluster === true && count >= OF_CLUSTER_MAX ? fromMs + SAME_MATTER_MS : dueMs;
    return Math.max(dueMs, budgetMs, (this.#sentMs.get(key) ?? -SAME_MATTER_MS) + SAME_MATTER_MS);
  }

  async #send(waiting: Waiting, sender: EventSender, log: Log, signal: AbortSignal): Promise<void> {
    const { event, atMs, count } = waiting;
    const { service } = event;
    const identity = service && (waiting.identity ?? this.#identify(`${service.namespace}/${service.name}`));
    const matter = [service?.namespace, service?.name, identity?.uid, identity?.version, event.reason, event.matter].join(" ");
    if (event.isOfCluster === true && (identity === undefined || this.#ofClusterMs.has(matter))) return;
    // First, because a long note is cut.
    const note =
      count === 1 || event.isOfCluster === true ? event.note : `${count} of these since the last event, the last one: ${event.note}`;
    // Names are made of it, and two events of one millisecond need two.
    const atNs = BigInt(Math.floor(wallMs(this.#clock, atMs))) * 1_000_000n + BigInt(this.#sent++ % 1_000_000);
    const object = eventObject(this.#source, { ...event, note }, atNs, event.isOfCluster === true ? identity : undefined);
    const { error, isKnown } = await sendEvent(object, service?.namespace, sender, signal);
    if (signal.aborted) return;
    if (event.isOfCluster === true) {
      this.#ofCluster.count += isKnown === true ? WRITTEN_COST : 1;
      if (error === undefined) this.#ofClusterMs.set(matter, this.#clock.nowMs());
    }
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
    const dueMs = Math.min(
      ...[...this.#waiting.values()].flatMap((some) => Array.from(some, ([key, waiting]) => this.#dueMs(key, waiting))),
    );
    const waitMs = Math.min(dueMs - this.#clock.nowMs(), SAME_MATTER_MS);
    await this.#clock.sleep(waitMs, AbortSignal.any([signal, put.signal]));
    this.#wake = (): void => undefined;
  }
}
