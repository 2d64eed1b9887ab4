import type { ClockReading, IPFamily, ObjectKind, ServicePort, SyncObserver } from "@turnout/core";
import type { Reply } from "../health/health.ts";
import type { NotInForce } from "../health/not-in-force.ts";
import { BackendMetrics, type ReadBackend } from "./backend-metrics.ts";
import { registerChanges } from "./change-metrics.ts";
import { registerComponent, type FeatureState } from "./component-metrics.ts";
import { registerConntrack, type ReadText } from "./conntrack-metrics.ts";
import { FAMILY, type FamilyMetrics } from "./family-metrics.ts";
import { registerHeard } from "./heard-metrics.ts";
import { registerIssues } from "./issue-metrics.ts";
import type { MetricSet } from "./metric-set.ts";
import { registerNotInForce } from "./not-in-force-metrics.ts";
import { processMetrics } from "./process-metrics.ts";
import { registerRestClient, type RestClientMetrics } from "./rest-client-metrics.ts";
import { registerRows } from "./row-metrics.ts";
import { SliMetrics } from "./sli-metrics.ts";
import { registerSource } from "./source-metrics.ts";
import { SourceProblems } from "./source-problems.ts";
import { registerSyncs } from "./sync-metrics.ts";
import { SYNC_BUCKETS } from "./buckets.ts";

/** What the metrics of a process are made with. */
export interface MetricsOptions {
  readonly clock: ClockReading;
  /** Turnout's version, e.g. `0.1.0`. */
  readonly version: string;
  /** The feature gates as they stand; default: none. */
  readonly features?: () => readonly FeatureState[];
  /** How files of /proc are read; for tests. */
  readonly readText?: ReadText;
}

/**
 * The metrics of one proxy process, kube-proxy's names first, ours with `turnout_`.
 *
 * Shape: hears every sync loop as a SyncObserver, and passes on what it hears to those that count; metrics of one backend alone come from its own
 * `metrics()`.
 * @source kube-proxy pkg/proxy/metrics/metrics.go
 */
export class Metrics implements SyncObserver {
  readonly #set: MetricSet = processMetrics();
  readonly #ofBackends: BackendMetrics = new BackendMetrics(this.#set);
  readonly #changes = registerChanges(this.#set);
  readonly #watchRows = registerRows(this.#set);
  readonly #clock: ClockReading;

  /** What keeps parts of the source from being followed. */
  readonly sources: SourceProblems;
  /** Turnout's version, e.g. `0.1.0`. */
  readonly version: string;
  readonly #parts: readonly FamilyMetrics[];

  /** Count one report about an API object; takes e.g. `Service shop/cart`. */
  readonly objectIssue: (object: string) => void = registerIssues(this.#set);

  /** What `/metrics/slis` answers. */
  readonly slis: SliMetrics = new SliMetrics();

  /** Count one answer of the health server. */
  readonly probed: (path: "healthz" | "livez", code: number) => void = registerProbes(this.#set);

  /** Note in how many dataplanes another service proxy has rules in force beside a family's. */
  readonly otherProxies: (family: IPFamily, count: number) => void;

  /** Note whether a family is left out on this host. */
  readonly leftOut: (family: IPFamily, isLeftOut: boolean) => void = registerLeftOut(this.#set);

  /** Hears of the node ports that this process answers on loopback. */
  readonly loopback: LoopbackMetrics = registerLoopback(this.#set);

  /** Hears what the client of the API server does. */
  readonly restClient: RestClientMetrics;

  /** Note that the API server said something of a kind of objects. */
  readonly heard: (kind: ObjectKind) => void;

  constructor({ clock, version, features = () => [], readText }: MetricsOptions) {
    this.#clock = clock;
    this.sources = new SourceProblems(clock);
    this.version = version;
    const { arch, platform, version: runtime } = process;
    registerComponent(this.#set, { version, arch, platform, runtime }, features);
    this.heard = registerHeard(this.#set, clock);
    this.restClient = registerRestClient(this.#set, clock);
    const others = registerOthers(this.#set);
    this.#parts = [registerSyncs(this.#set, clock), this.#changes, registerObjects(this.#set), registerFlows(this.#set), others];
    this.otherProxies = others.note;
    registerConntrack(this.#set, readText);
    registerSource(this.#set, () => this.sources.all);
  }

  /** Say where it is read from what is not in force. */
  watchNotInForce(read: () => NotInForce): void {
    registerNotInForce(this.#set, read);
  }

  /** All metrics in the text format. */
  async text(): Promise<string> {
    return (await this.reply()).body;
  }

  /** What a scrape is answered with. */
  async reply(): Promise<Reply> {
    await this.#ofBackends.collect();
    return await this.#set.reply();
  }

  /** Stop measuring. */
  close(): void {
    this.#set.close();
  }

  /** Say where a family's rows are read from when metrics are asked for; also notes the start of its loop. */
  watchRows(family: IPFamily, rows: () => Iterable<ServicePort>): void {
    this.#watchRows(family, rows);
    for (const part of this.#parts) part.queued?.({ family, atMs: this.#clock.nowMs() });
    for (const part of this.#parts) part.started?.(family);
  }

  /** Say where the numbers are read from that a family's backend counts itself. */
  watchBackend(family: IPFamily, read: ReadBackend): void {
    this.#ofBackends.watch(family, read);
  }

  /** Count one API object that came or went. */
  objectChanged(kind: ObjectKind): void {
    this.#changes.changed(kind);
  }

  /** @see SyncObserver */
  queued(event: Parameters<SyncObserver["queued"]>[0]): void {
    for (const part of this.#parts) part.queued?.(event);
  }

  /** @see SyncObserver */
  synced(event: Parameters<SyncObserver["synced"]>[0]): void {
    for (const part of this.#parts) part.synced?.(event);
  }

  /** @see SyncObserver */
  failed(event: Parameters<SyncObserver["failed"]>[0]): void {
    for (const part of this.#parts) part.failed?.(event);
  }

  /** @see SyncObserver */
  flowsForgotten(event: Parameters<SyncObserver["flowsForgotten"]>[0]): void {
    for (const part of this.#parts) part.flowsForgotten?.(event);
  }

  /** @see SyncObserver */
  quarantined(event: Parameters<SyncObserver["quarantined"]>[0]): void {
    for (const part of this.#parts) part.quarantined?.(event);
  }
}

/** Register how the health server answered, and get the function that counts one answer. */
function registerProbes(set: MetricSet): (path: "healthz" | "livez", code: number) => void {
  const counters = {
    healthz: set.counter("kubeproxy_proxy_healthz_total", "[ALPHA] Cumulative proxy healthz HTTP status", ["code"]),
    livez: set.counter("kubeproxy_proxy_livez_total", "[ALPHA] Cumulative proxy livez HTTP status", ["code"]),
  };
  return (path, code) => counters[path].inc({ code: String(code) });
}

/** What counts other proxies. */
interface OtherProxyMetrics extends FamilyMetrics {
  readonly note: (family: IPFamily, count: number) => void;
}

/** Register in how many dataplanes other service proxies have rules in force. */
function registerOthers(set: MetricSet): OtherProxyMetrics {
  const others = set.gauge("turnout_other_proxies", "Dataplanes in which another service proxy has rules in force", FAMILY);
  const note = (family: IPFamily, count: number): void => others.set({ ip_family: family }, count);
  return { note, started: (family) => note(family, 0) };
}

/** Register which families are left out on this host. */
function registerLeftOut(set: MetricSet): (family: IPFamily, isLeftOut: boolean) => void {
  const leftOut = set.gauge("turnout_family_left_out", "1: this host can't do the family, and its Services have no rules here", FAMILY);
  return (family, isLeftOut) => leftOut.set({ ip_family: family }, isLeftOut ? 1 : 0);
}

/** Register how many conntrack flows were forgotten, and how long that took. */
function registerFlows(set: MetricSet): FamilyMetrics {
  const duration = set.histogram(
    "kubeproxy_conntrack_reconciler_sync_duration_seconds",
    "[ALPHA] ReconcileConntrackFlowsLatency latency in seconds",
    FAMILY,
    SYNC_BUCKETS,
  );
  const deleted = set.counter(
    "kubeproxy_conntrack_reconciler_deleted_entries_total",
    "[ALPHA] Cumulative conntrack flows deleted by conntrack reconciler",
    FAMILY,
  );
  return {
    started: (family) => deleted.inc({ ip_family: family }, 0),
    flowsForgotten: ({ family, count, durationMs }) => {
      duration.observe({ ip_family: family }, durationMs / 1000);
      deleted.inc({ ip_family: family }, count);
    },
  };
}

/** Register how many kernel objects are in force, were written and removed, and what the host refuses. */
function registerObjects(set: MetricSet): FamilyMetrics {
  const objects = set.gauge("turnout_objects", "Kernel objects in force", FAMILY);
  const put = set.counter("turnout_objects_put_total", "Kernel objects written", FAMILY);
  const removed = set.counter("turnout_objects_removed_total", "Kernel objects removed", FAMILY);
  const repaired = set.counter("turnout_objects_repaired_total", "Kernel objects that others had changed, found by comparing", FAMILY);
  const quarantined = set.gauge("turnout_quarantined_rows", "Service ports that the host refuses, wholly or in part", FAMILY);
  const failed = set.gauge("turnout_failed_objects", "Kernel objects that the host refuses by themselves", FAMILY);
  return {
    started: (family) => {
      const labels = { ip_family: family };
      for (const counter of [put, removed, repaired]) counter.inc(labels, 0);
      for (const gauge of [quarantined, failed]) gauge.set(labels, 0);
    },
    synced: (event) => {
      const labels = { ip_family: event.family };
      objects.set(labels, event.objects);
      put.inc(labels, event.put);
      removed.inc(labels, event.removed);
      repaired.inc(labels, event.drifted);
    },
    quarantined: (event) => {
      quarantined.set({ ip_family: event.family }, event.rows.length);
      failed.set({ ip_family: event.family }, event.objects.length);
    },
  };
}

/** What counts the node ports that this process answers on loopback. */
interface LoopbackMetrics {
  readonly listeners: (family: IPFamily, count: number) => void;
  readonly failed: (family: IPFamily) => void;
}

/**
 * Register kube-proxy's metrics of node ports on loopback; here they are of every backend.
 * @source kube-proxy pkg/proxy/metrics/metrics.go LocalhostNodePortListeners
 */
function registerLoopback(set: MetricSet): LoopbackMetrics {
  const listeners = set.gauge(
    "kubeproxy_nftables_localhost_nodeport_listeners",
    "[ALPHA] Number of active localhost NodePort listeners of this process.",
    FAMILY,
  );
  const failures = set.counter(
    "kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total",
    "[ALPHA] Number of localhost NodePort listener creation failures.",
    FAMILY,
  );
  return {
    listeners: (family, count) => {
      listeners.set({ ip_family: family }, count);
      failures.inc({ ip_family: family }, 0);
    },
    failed: (family) => failures.inc({ ip_family: family }),
  };
}
