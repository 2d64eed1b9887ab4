import { once } from "node:events";
import {
  boundedFeed,
  nodePortAddresses,
  ProxyError,
  SERVICE_ENTRIES_MAX,
  serviceHealth,
  SyncLoop,
  type Backend,
  type BackendModule,
  type Feed,
  type HostAddress,
  type IPFamily,
  type Issue,
  type KernelObject,
  type SyncObserver,
  type World,
} from "@turnout/core";
import type { RunConfig } from "../config/config.ts";
import { dryBackend } from "./dry-backend.ts";
import type { FamilyStates } from "../feed/family-states.ts";
import { GuardedFeed, heldForRows } from "../feed/guarded-feed.ts";
import type { SyncProgress } from "../health/health.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { clearLeftovers, otherDataplanes, reasonToKeep, type Dataplane, type LeftoverOptions } from "./leftovers.ts";
import { NodeFeed } from "../feed/node-feed.ts";
import { RepairPacer } from "../repair/repair-pacer.ts";
import { ServiceHealthServers } from "../health/service-health.ts";

/** What one family's proxying is made of. */
export interface FamilyParts<H, K extends KernelObject, S> {
  readonly module: BackendModule<unknown, H, K, S>;
  readonly backend: Backend<H, K, S>;
  readonly family: IPFamily;
  readonly feed: Feed;
  readonly host: H;
  readonly config: RunConfig;
  readonly world: World;
  readonly metrics: Metrics;
  readonly report: (issue: Issue) => void;
  readonly isProxyHealthy: () => boolean;
  readonly dryRun: ((text: string) => void) | undefined;
  readonly leftovers: LeftoverOptions | undefined;
  /** What all families said, to doubt a state without any Service; undefined: it is believed. */
  readonly states: FamilyStates | undefined;
  /** Synced one time. */
  readonly isOnce: boolean;
}

/** Everything is compared with the host at least this often. @source semantics.md 5.3 */
const FULL_SYNC_MS = 3_600_000;

/** One family: its sync loop and the health check node ports that follow it. */
export class FamilyRun<H, K extends KernelObject, S> {
  readonly family: IPFamily;
  readonly #parts: FamilyParts<H, K, S>;
  /** Which can apply nothing in a dry run. */
  readonly #backend: Backend<H, K, S>;
  readonly #feed: NodeFeed;
  readonly #guard: GuardedFeed | undefined;
  readonly #loop: SyncLoop<H, K, S>;
  readonly #health: ServiceHealthServers;
  readonly #startedMs: number;
  readonly #firstSync = Promise.withResolvers<void>();
  #pacer: RepairPacer | undefined;
  #hasSynced = false;
  #isHealthDue = false;

  constructor(parts: FamilyParts<H, K, S>) {
    const { backend, family, config, world, module, report, dryRun, metrics } = parts;
    this.family = family;
    this.#parts = parts;
    const onBlind = (error: ProxyError): void =>
      world.log.warn("the host can't be looked at, planning for an empty one", { family, error });
    this.#backend = dryRun === undefined ? backend : dryBackend(backend, onBlind);
    this.#startedMs = world.clock.nowMs();
    this.#guard = parts.states === undefined ? undefined : this.#guardFor(parts.states);
    const entriesMax = config.serviceEntriesMax ?? module.serviceEntriesMax ?? SERVICE_ENTRIES_MAX;
    this.#feed = new NodeFeed(boundedFeed(this.#guard ?? parts.feed, { entriesMax, report }), world.log);
    this.#health = new ServiceHealthServers({
      family,
      log: world.log,
      isProxyHealthy: parts.isProxyHealthy,
      addresses: () => this.#addresses(),
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
      maxIntervalMs: FULL_SYNC_MS,
      retryMs: config.syncPeriodMs,
      capabilities: module.capabilities,
      report,
      ...(dryRun === undefined ? {} : { dryRun }),
    });
    metrics.watchRows(family, () => this.#loop.rows.values());
    metrics.watchBackend(family, () => backend.metrics?.() ?? []);
  }

  /** For the health report. */
  get progress(): SyncProgress {
    const pendingSinceMs = this.#guard?.refusedSinceMs ?? this.#loop.pendingSinceMs;
    return { startedMs: this.#startedMs, lastSuccessMs: this.#loop.lastSuccessMs, pendingSinceMs };
  }

  /** Sync one time. @throws {ProxyError} what it failed with; where only some rows were refused the rest is done all the same. */
  async once(signal: AbortSignal): Promise<void> {
    try {
      await this.#loop.once(signal);
    } finally {
      if (this.#hasSynced) {
        await this.#loop.finish(signal);
        await this.#clearLeftovers(signal);
      }
    }
  }

  /** Sync and follow the host until aborted. Never rejects for operating errors. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await Promise.all([this.#loop.run(signal), this.#followHost(signal)]);
    } finally {
      await this.#health.close();
    }
  }

  /** Let go of the backend. */
  async close(signal: AbortSignal): Promise<void> {
    await this.#parts.backend.close(signal);
  }

  #guardFor(states: FamilyStates): GuardedFeed {
    const { family, feed, host, isOnce, world } = this.#parts;
    const backend = this.#backend;
    return new GuardedFeed({
      feed,
      family,
      states,
      failsAtOnce: isOnce,
      nowMs: () => world.clock.nowMs(),
      log: world.log,
      countHeld: async ({ node }, signal) =>
        heldForRows(await backend.observe(signal), node === undefined ? [] : backend.skeleton({ node, host })),
    });
  }

  async #addresses(): Promise<readonly string[]> {
    const { config, world, family } = this.#parts;
    // nftables mode answers node ports on the primary address unless told otherwise (semantics.md 4.2).
    const wanted = config.settings.nodePortAddresses ?? (config.proxyMode === "nftables" ? ["primary"] : []);
    const host: readonly HostAddress[] = await world.netlink.addresses(family);
    const hostAddresses = host.map(({ ip }) => ip);
    const chosen = nodePortAddresses({ wanted, family, primary: this.#loop.node?.addresses[0], hostAddresses });
    return chosen === "all" ? [family === "IPv4" ? "0.0.0.0" : "::"] : chosen;
  }

  async #followHost(signal: AbortSignal): Promise<void> {
    const { backend, family, world, config } = this.#parts;
    // Not before: a cold start is a hundred thousand changes of our own to be told about, and what is replaced has to stay until then.
    if (!signal.aborted) await Promise.race([this.#firstSync.promise, once(signal, "abort")]);
    await this.#clearLeftovers(signal);
    // A dry run has nothing in force that others could change.
    if (backend.watch === undefined || this.#parts.dryRun !== undefined) return;
    const audit = (): void => this.#loop.audit();
    const { clock, log } = world;
    const pacer = new RepairPacer({ family, clock, log, audit, maxWaitMs: config.syncPeriodMs, signal });
    this.#pacer = pacer;
    while (!signal.aborted) {
      try {
        for await (const event of backend.watch(signal)) {
          if (event.kind === "facts") {
            this.#isHealthDue = true;
            this.#loop.setHost(event.facts);
          } else pacer.changed(event.what);
        }
        if (signal.aborted) return;
        world.log.warn("watching the host ended, starting again", { family });
      } catch (error) {
        if (signal.aborted) return;
        // Anything but an operating error is a defect, and ends the process.
        if (!ProxyError.is(error)) throw error;
        world.log.warn("the host can't be watched, trying again", { family, error });
      }
      await world.clock.sleep(config.syncPeriodMs, signal);
      // Something may have changed while nobody watched.
      if (!signal.aborted) this.#loop.audit();
    }
  }

  /** Our rules are in force: those of former proxies are not needed any more. */
  async #clearLeftovers(signal: AbortSignal): Promise<void> {
    const { module, backend, family, world, leftovers, dryRun } = this.#parts;
    if (leftovers === undefined || signal.aborted) return;
    const own: Dataplane = { name: module.name, isInUse: true, visit: (work) => work(backend) };
    const dataplanes = [own, ...otherDataplanes(await leftovers.others(), family, world)];
    const keptBecause = reasonToKeep(leftovers.isKept, dryRun !== undefined, module.residence);
    await clearLeftovers({ family, dataplanes, keptBecause, log: world.log }, signal);
  }

  #observer(): SyncObserver {
    const { metrics, world, family } = this.#parts;
    return {
      queued: (event) => {
        metrics.queued(event);
        // Asked here and not after the sync: the feed may be a change set ahead of what was synced.
        if (this.#feed.takeHealthTouched()) this.#isHealthDue = true;
      },
      failed: (event) => metrics.failed(event),
      flowsForgotten: (event) => metrics.flowsForgotten(event),
      quarantined: (event) => metrics.quarantined(event),
      synced: (event) => {
        metrics.synced(event);
        const { objects, put, removed, deferred, full } = event;
        const fields = { family, rows: this.#loop.rows.size, objects, put, removed, full, ms: Math.round(event.durationMs) };
        if (deferred > 0) {
          this.#pacer?.synced(event);
          world.log.debug("synced in part, the time was up", { ...fields, deferred });
          return;
        }
        if (this.#hasSynced) world.log.debug("synced", fields);
        else world.log.info(this.#parts.dryRun === undefined ? "first sync done" : "first comparison done", fields);
        this.#hasSynced = true;
        this.#firstSync.resolve();
        this.#pacer?.synced(event);
        if (this.#parts.dryRun !== undefined || (!this.#isHealthDue && !this.#health.hasFailures)) return;
        this.#isHealthDue = false;
        void this.#health.sync(serviceHealth(this.#loop.rows.values()));
      },
    };
  }
}
