import { once } from "node:events";
import {
  SERVICE_ENTRIES_MAX,
  serviceHealth,
  SyncLoop,
  type Backend,
  type BackendModule,
  type Capabilities,
  type Feed,
  type IPFamily,
  type Issue,
  type KernelObject,
  type ProxyError,
  type SyncObserver,
  type Variants,
  type World,
} from "@turnout/core";
import type { RunConfig } from "../config/run-config.ts";
import type { ProxyEvent } from "../events/proxy-events.ts";
import { dryBackend } from "./dry-backend.ts";
import type { FamilyStates } from "../feed/family-states.ts";
import type { SyncProgress } from "../health/health.ts";
import type { ServiceHealthServers } from "../health/service-health.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { familyHealth } from "./family-health.ts";
import { FormerProxies } from "./former-proxies.ts";
import { loopbackNodePorts, type LoopbackNodePorts } from "./loopback-node-ports.ts";
import { HostRepair } from "./host-repair.ts";
import type { LeftoverOptions, ReportedCauses } from "./leftovers.ts";
import { RefusedServices } from "./refused-services.ts";
import { skeletonBefore } from "./rule-settings.ts";
import { countForRows, NodeFeed, type FeedGuard } from "../feed/node-feed.ts";
import { CountReader } from "../insight/count-reader.ts";
import type { RecentChanges } from "../insight/recent-changes.ts";
import type { FamilyView } from "../insight/proxy-view.ts";
import { RecentLatencies } from "../insight/recent-latencies.ts";
import { countMetrics } from "../insight/service-counts.ts";

/** What one family's proxying is made of. */
export interface FamilyParts<H, K extends KernelObject, S> {
  readonly module: BackendModule<unknown, H, K, S>;
  readonly backend: Backend<H, K, S>;
  /** What it can do on this host. */
  readonly capabilities: Capabilities;
  /** How it behaves on this host. */
  readonly variants: Variants;
  readonly family: IPFamily;
  readonly feed: Feed;
  readonly host: H;
  /** This host's addresses as they are now. */
  readonly hostAddresses: (family: IPFamily) => readonly string[];
  readonly config: RunConfig;
  readonly world: World;
  readonly metrics: Metrics;
  readonly report: (issue: Issue) => void;
  readonly isProxyHealthy: () => boolean;
  /** Hears what people are to see at the Node or at a Service. */
  readonly onEvent?: ((event: ProxyEvent) => void) | undefined;
  readonly dryRun?: ((text: string) => void) | undefined;
  readonly leftovers?: LeftoverOptions | undefined;
  /** What was told of leftovers that can't be looked for. */
  readonly reported: ReportedCauses;
  /** What all families said, to doubt a state without any Service; undefined: it is believed. */
  readonly states: FamilyStates | undefined;
  /** Synced one time. */
  readonly isOnce: boolean;
  /** Of all families. */
  readonly changes: RecentChanges;
  /** Ends the run. */
  readonly signal: AbortSignal;
}

/**
 * Everything is compared with the host at least this often, where the backend tells of what others do, or it is found part by part.
 * @source kube-proxy pkg/proxy/nftables/proxier.go: a full sync at least every hour
 */
const FULL_SYNC_MS = 3_600_000;

/** One family: its sync loop and the health check node ports that follow it. */
export class FamilyRun<H, K extends KernelObject, S> {
  readonly family: IPFamily;
  readonly #parts: FamilyParts<H, K, S>;
  /** Which can apply nothing in a dry run. */
  readonly #backend: Backend<H, K, S>;
  readonly #feed: NodeFeed;
  readonly #loop: SyncLoop<H, K, S>;
  readonly #health: ServiceHealthServers;
  readonly #repair: HostRepair<H, K, S>;
  readonly #loopback: LoopbackNodePorts | undefined;
  readonly #startedMs: number;
  readonly #firstSync = Promise.withResolvers<void>();
  readonly #formerProxies: FormerProxies;
  readonly #latencies = new RecentLatencies();
  readonly #counts: CountReader;
  #appliedSinceMs: number | undefined;
  #hadServices = false;
  #changeSets = 0;
  #hasSynced = false;
  /** Something changed that health check node ports depend on. */
  #isHealthDue = false;

  constructor(parts: FamilyParts<H, K, S>) {
    const { backend, family, config, world, module, report, dryRun, metrics } = parts;
    this.family = family;
    this.#parts = parts;
    const onBlind = (error: ProxyError): void =>
      world.log.warn("the host can't be looked at, planning for an empty one", { family, error });
    this.#backend = dryRun === undefined ? backend : dryBackend(backend, onBlind);
    this.#startedMs = world.clock.nowMs();
    const entriesMax = config.serviceEntriesMax ?? module.serviceEntriesMax ?? SERVICE_ENTRIES_MAX;
    const guard = parts.states === undefined ? undefined : this.#guardFor(parts.states);
    this.#feed = new NodeFeed({ feed: parts.feed, family, log: world.log, bound: { entriesMax, report }, backend, guard });
    this.#health = familyHealth({ ...parts, node: () => this.#loop.node });
    this.#repair = new HostRepair({
      ...parts,
      loop: () => this.#loop,
      clock: world.clock,
      log: world.log,
      onNewFacts: () => (this.#isHealthDue = true),
    });
    const isLasting = dryRun === undefined && !parts.isOnce;
    this.#loopback = isLasting ? loopbackNodePorts(config.settings, parts.variants, this.#loopbackOptions()) : undefined;
    this.#formerProxies = new FormerProxies({
      ...parts,
      isDryRun: dryRun !== undefined,
      firstWaitMs: config.syncPeriodMs,
      onPoll: (count) => metrics.otherProxies(family, count),
    });
    this.#loop = new SyncLoop({
      backend: this.#backend,
      feed: this.#feed,
      family,
      host: parts.host,
      clock: world.clock,
      log: world.log,
      observer: this.#observer(),
      minIntervalMs: config.minSyncPeriodMs,
      // Asked with each comparison: which tool is in use, and so what it tells, may be known only after the first.
      get maxIntervalMs(): number {
        // In a dry run nothing of ours is in force that others could change.
        const isFound = backend.reportsDrift === true || backend.looksUpCheaply === true;
        const isReported = (isFound && config.repairsOnNotice) || dryRun !== undefined;
        return isReported ? FULL_SYNC_MS : Math.min(config.syncPeriodMs, FULL_SYNC_MS);
      },
      // Who turns repairs on notice off goes back to kube-proxy's promise: once each sync period.
      keepsMaxInterval: !config.repairsOnNotice,
      retryMs: config.syncPeriodMs,
      capabilities: parts.capabilities,
      report,
      ...(dryRun === undefined ? {} : { dryRun }),
    });
    metrics.watchRows(family, () => this.#loop.rows.values());
    const rowsMax = config.serviceMetricsMax;
    const ownersOf = (object: string): ReadonlySet<string> => this.#loop.ownersOf(object);
    this.#counts = new CountReader({ backend, rows: () => this.#loop.rows, ownersOf, rowsMax, clock: world.clock, log: world.log });
    metrics.watchBackend(family, async () => {
      const counted = await this.#counts.busiest(parts.signal);
      return [...((await backend.metrics?.()) ?? []), ...(counted === undefined ? [] : countMetrics(counted))];
    });
  }

  /** For the health report. */
  get progress(): SyncProgress {
    const pendingSinceMs = this.#feed.refusedSinceMs ?? this.#loop.pendingSinceMs;
    return { startedMs: this.#startedMs, lastSuccessMs: this.#loop.lastSuccessMs, pendingSinceMs, unready: this.#loop.readiness.problem };
  }

  /** The family as it is now, to look at. */
  get view(): FamilyView {
    const loop = this.#loop;
    const { context, rows, objectCount, lastSuccessMs: lastSyncMs, lastError, refusals } = loop;
    return {
      family: this.family,
      backend: this.#parts.backend,
      context,
      rows,
      objectCount,
      hadServices: this.#hadServices || rows.size > 0,
      appliedSinceMs: this.#appliedSinceMs,
      lastSyncMs,
      pendingSinceMs: this.progress.pendingSinceMs,
      get waitingRows(): readonly string[] {
        return loop.waitingRows;
      },
      lastError,
      refusals,
      otherProxies: this.#formerProxies.found,
      changeSets: this.#changeSets,
      externalChange: this.#repair.last,
      latency: this.#latencies.summary,
      counted: (signal) => this.#counts.busiest(signal),
      issues: () => loop.issues(),
    };
  }

  /** Resolves when the first sync is in force, and what a former proxy left is gone or stays. */
  get settled(): Promise<void> {
    return this.#formerProxies.settled;
  }

  /** Resolves when nobody will be asked any more for what takes the rights of looking for other proxies' rules. */
  get standalone(): Promise<void> {
    return this.#formerProxies.standalone;
  }

  /** Sync one time, again and again until it succeeds or `signal` aborts. @throws {ProxyError} what it failed with last; where only some rows were refused the rest is done all the same. */
  async once(signal: AbortSignal): Promise<void> {
    try {
      await this.#loop.once(signal, "retries");
    } finally {
      if (this.#hasSynced) {
        await this.#loop.finish(signal);
        await this.#formerProxies.clear(signal);
      }
    }
  }

  /** Sync and follow the host until aborted. Never rejects for operating errors. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      const adopted = skeletonBefore(this.#parts);
      await Promise.all([this.#loop.run(signal), this.#loop.readiness.watch(adopted, signal), this.#followHost(signal)]);
    } finally {
      await Promise.all([this.#health.close(), this.#loopback?.close()]);
    }
  }

  #loopbackOptions(): Parameters<typeof loopbackNodePorts>[2] {
    const { family, metrics, world } = this.#parts;
    return {
      family,
      clock: world.clock,
      log: world.log,
      rows: () => this.#loop.rows,
      onListeners: (count) => metrics.loopback.listeners(family, count),
      onFailure: () => metrics.loopback.failed(family),
    };
  }

  #guardFor(states: FamilyStates): FeedGuard {
    const { host, isOnce, world } = this.#parts;
    const backend = this.#backend;
    return {
      states,
      failsAtOnce: isOnce,
      nowMs: () => world.clock.nowMs(),
      countOnHost: async ({ node }, signal) =>
        countForRows(await backend.observe(signal), node === undefined ? [] : backend.skeleton({ node, host })),
    };
  }

  async #followHost(signal: AbortSignal): Promise<void> {
    // Not before: a cold start is a hundred thousand changes of our own to be told about, and what is replaced has to stay until then.
    if (!signal.aborted) await Promise.race([this.#firstSync.promise, once(signal, "abort")]);
    // At the same time: looking for what a former proxy left may take long, and what is ours is repaired meanwhile. A dry run has nothing in force that
    // other programs could change.
    const isDry = this.#parts.dryRun !== undefined;
    await Promise.all([isDry ? undefined : this.#repair.run(signal), this.#formerProxies.watch(signal)]);
  }

  #observer(): SyncObserver {
    const { metrics, world, family, changes, config } = this.#parts;
    return {
      queued: (event) => {
        metrics.queued(event);
        this.#changeSets += 1;
        this.#loopback?.note(event.changes);
        if (config.hasWebPage) changes.note(event.changes, this.#loop.rows, event.atMs);
        // Asked here and not after the sync: the feed may be a change set ahead of what was synced.
        if (this.#feed.consumeHealthTouched()) this.#isHealthDue = true;
      },
      failed: (event) => metrics.failed(event),
      flowsForgotten: (event) => metrics.flowsForgotten(event),
      quarantined: new RefusedServices({ ...this.#parts, refusals: () => this.#loop.refusals }).note,
      synced: (event) => {
        metrics.synced(event);
        const { objects, put, removed, deferred, full, queuedMs, waitingSinceMs } = event;
        this.#latencies.active(queuedMs, event.atMs);
        this.#hadServices ||= this.#loop.rows.size > 0;
        const fields = { family, rows: this.#loop.rows.size, objects, put, removed, full, ms: Math.round(event.durationMs) };
        if (deferred > 0) {
          this.#repair.synced(event);
          world.log.debug("synced in part, the time was up", { ...fields, deferred });
          return;
        }
        this.#appliedSinceMs ??= event.atMs;
        if (this.#hasSynced) world.log.debug(waitingSinceMs === undefined ? "synced" : "synced, more rows wait for their turn", fields);
        else world.log.info(this.#parts.dryRun === undefined ? "first sync done" : "first comparison done", fields);
        this.#hasSynced = true;
        this.#firstSync.resolve();
        this.#repair.synced(event);
        void this.#loopback?.sync();
        if (!this.#isHealthDue || this.#parts.dryRun !== undefined) return;
        this.#isHealthDue = false;
        void this.#health.sync(serviceHealth(this.#loop.rows.values()));
      },
    };
  }
}
