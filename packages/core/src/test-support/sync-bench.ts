import { onTestFinished } from "vitest";
import { createFeed } from "../state/node-view.ts";
import { OBJECT_KINDS } from "../model/api-objects.ts";
import type { Issue } from "../model/api-objects.ts";
import { Store } from "../state/store.ts";
import { SyncLoop } from "../sync/sync-loop.ts";
import type { SyncLoopOptions } from "../sync/sync-loop.ts";
import { flushPromises, TestClock } from "../testing/clock.ts";
import { carryOut } from "../testing/history.ts";
import type { ObjectEvent } from "../testing/history.ts";
import { rawService } from "../testing/objects.ts";
import type { RawObject } from "../testing/objects.ts";
import { RecordingLog } from "../testing/recording-log.ts";
import { RecordingObserver, ScriptedFeed } from "./records.ts";
import type { KernelObject } from "../contract/backend.ts";
import { addressesOf, ToyHost } from "./toy-backend.ts";
import type { ToyFacts, ToyFaults, ToyStep } from "./toy-backend.ts";
import { POD_SETTINGS, upsertRaw } from "../testing/view.ts";

/** How a bench is set up. Intervals in ms. */
export interface SyncBenchOptions extends Partial<
  Pick<
    SyncLoopOptions<ToyFacts, KernelObject, ToyStep>,
    "minIntervalMs" | "maxIntervalMs" | "retryMs" | "turnMs" | "dryRun" | "capabilities"
  >
> {
  /** Whether the store's first lists are complete from the start; default true. */
  readonly isSynced?: boolean;
  /** Feed the loop from {@link SyncBench.feed} instead of the store. */
  readonly scripted?: boolean;
  readonly host?: ToyHost;
  readonly faults?: ToyFaults;
  /** Leave the loop unstarted, e.g. to call `once`. */
  readonly isIdle?: boolean;
}

/** A sync loop between a store (or a scripted feed) and a toy host, all under the test's own time. */
export interface SyncBench {
  readonly loop: SyncLoop<ToyFacts, KernelObject, ToyStep>;
  readonly host: ToyHost;
  readonly clock: TestClock;
  readonly observer: RecordingObserver;
  readonly log: RecordingLog;
  readonly feed: ScriptedFeed;
  readonly issues: readonly Issue[];
  upsert(raw: RawObject): void;
  carryOut(objectEvent: ObjectEvent): void;
  /** Remove a Service of namespace "shop". */
  remove(name: string): void;
  markSynced(): void;
  /** Addresses in force, sorted. */
  addresses(): readonly string[];
  /** When syncs succeeded, in ms since the start. */
  syncTimes(): readonly number[];
  /** End the loop, as the end of the test does; resolves when `run` has returned. @throws {Error} when a plan did not fit what the host held. */
  stop(): Promise<void>;
}

/** Set a bench up, put `objects` into its store and let it run until it waits. */
export async function createSyncBench(objects: readonly RawObject[], options: SyncBenchOptions = {}): Promise<SyncBench> {
  const clock = new TestClock();
  const startMs = clock.nowMs();
  const [log, observer, feed, host] = [new RecordingLog(), new RecordingObserver(), new ScriptedFeed(), options.host ?? new ToyHost()];
  if (options.faults !== undefined) host.faults = options.faults;
  const issues: Issue[] = [];
  const store = new Store();
  const { minIntervalMs = 0, maxIntervalMs = 3_600_000, retryMs = 30_000, turnMs, dryRun, capabilities } = options;
  const loop = new SyncLoop<ToyFacts, KernelObject, ToyStep>({
    backend: host.open(),
    feed: options.scripted === true ? feed : createFeed(store, { nodeName: "node1", family: "IPv4", settings: POD_SETTINGS }),
    family: "IPv4",
    host: { generation: 1 },
    clock,
    log,
    observer,
    minIntervalMs,
    maxIntervalMs,
    retryMs,
    report: (issue: Issue): void => void issues.push(issue),
    ...(turnMs === undefined ? {} : { turnMs }),
    ...(dryRun === undefined ? {} : { dryRun }),
    ...(capabilities === undefined ? {} : { capabilities }),
  });
  const markSynced = (): void => OBJECT_KINDS.forEach((kind) => store.markSynced(kind));
  for (const raw of objects) upsertRaw(store, raw);
  if (options.isSynced !== false) markSynced();
  const abort = new AbortController();
  const running = options.isIdle === true ? Promise.resolve() : loop.run(abort.signal);
  const stop = async (): Promise<void> => {
    abort.abort();
    await running;
    if (host.violations.length > 0) throw new Error(`plans did not fit the host: ${host.violations.join("; ")}`);
  };
  onTestFinished(stop);
  await flushPromises();
  return {
    loop,
    host,
    clock,
    observer,
    log,
    feed,
    issues,
    markSynced,
    upsert: (raw: RawObject): void => upsertRaw(store, raw),
    carryOut: (objectEvent: ObjectEvent): void => carryOut(store, objectEvent),
    remove: (name: string): void => store.remove("Service", "shop", name),
    addresses: (): readonly string[] => addressesOf(host),
    syncTimes: (): readonly number[] => observer.syncs.map(({ atMs }) => atMs - startMs),
    stop,
  };
}

/** Service number n; its cluster IP ends in n. */
export function service(n: number, spec: RawObject = {}): RawObject {
  return rawService(`s${n}`, { clusterIP: `10.96.0.${n}`, ...spec });
}

/** The same in another namespace. */
export function serviceElsewhere(n: number): RawObject {
  return rawService(`s${n}`, { clusterIP: `10.96.0.${n}` }, { namespace: "elsewhere" });
}

/** The Services with the numbers from 1 to `count`. */
export function services(count: number): readonly RawObject[] {
  return Array.from({ length: count }, (_, index) => service(index + 1));
}
