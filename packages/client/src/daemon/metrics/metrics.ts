import type { BackendMetric, IPFamily, ObjectKind, ServicePort, SyncObserver } from "@turnout/core";
import { exponentialBuckets, type Counter, type Gauge, type Histogram } from "prom-client";
import { BackendMetrics } from "./backend-metrics.ts";
import type { Reply } from "../health/health.ts";
import { registerIssues } from "./issue-metrics.ts";
import type { MetricSet, Readings } from "./metric-set.ts";
import { processMetrics } from "./process-metrics.ts";

/** Buckets E of semantics.md section 8: 1 ms to 16 s. */
const SYNC_BUCKETS: number[] = exponentialBuckets(0.001, 2, 15);
/** Buckets N: 0.25 s to 5 minutes. */
const PROGRAMMING_BUCKETS: number[] = [0.25, 0.5, ...steps(1, 59, 1), ...steps(60, 115, 5), ...steps(120, 300, 30)];
const FAMILY = ["ip_family"] as const;
type Family = (typeof FAMILY)[number];

function steps(from: number, to: number, by: number): number[] {
  return Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, index) => from + index * by);
}

/** Count the rows that have a Local policy and endpoints, but none here. @source semantics.md section 8; KEP-2086 */
export function countNoLocalEndpoints(rows: Iterable<ServicePort>): { readonly internal: number; readonly external: number } {
  let internal = 0;
  let external = 0;
  for (const row of rows) {
    if (!(row.internalLocal || row.externalLocal) || row.local.length > 0) continue;
    if (!row.endpoints.some((endpoint) => endpoint.ready || (endpoint.serving && endpoint.terminating))) continue;
    if (row.internalLocal) internal += 1;
    if (row.externalLocal) external += 1;
  }
  return { internal, external };
}

/**
 * The metrics of one proxy process, kube-proxy's names first, ours with `turnout_`.
 *
 * Shape: hears every sync loop as a SyncObserver; only metrics of the backend's mode are registered.
 * @source semantics.md section 8
 */
export class Metrics implements SyncObserver {
  readonly #set: MetricSet = processMetrics();
  readonly #ofBackends: BackendMetrics = new BackendMetrics(this.#set);
  readonly #nowMs: () => number;
  readonly #rows = new Map<IPFamily, () => Iterable<ServicePort>>();
  readonly #duration: Histogram<Family>;
  readonly #fullDuration: Histogram<Family>;
  readonly #partialDuration: Histogram<Family>;
  readonly #lastSync: Gauge<Family>;
  readonly #lastQueued: Gauge<Family>;
  readonly #programming: Histogram<Family>;
  readonly #nftFailures: Counter<Family> | undefined;
  readonly #flowsDuration: Histogram<Family>;
  readonly #flowsDeleted: Counter<Family>;
  readonly #healthz: Counter<"code">;
  readonly #livez: Counter<"code">;
  readonly #serviceChanges: Counter;
  readonly #endpointChanges: Counter;
  readonly #servicePending: Gauge;
  readonly #endpointPending: Gauge;
  readonly #objects: Gauge<Family>;
  readonly #put: Counter<Family>;
  readonly #removed: Counter<Family>;
  readonly #failures: Counter<Family | "code">;
  readonly #quarantined: Gauge<Family>;
  readonly #failedObjects: Gauge<Family>;
  readonly #countIssue: (object: string) => void;

  constructor(options: { readonly backend: string; readonly nowMs: () => number }) {
    this.#nowMs = options.nowMs;
    this.#duration = this.#histogram("kubeproxy_sync_proxy_rules_duration_seconds", "SyncProxyRules latency in seconds", SYNC_BUCKETS);
    this.#fullDuration = this.#histogram(
      "kubeproxy_sync_full_proxy_rules_duration_seconds",
      "SyncProxyRules latency in seconds for full resyncs",
      SYNC_BUCKETS,
    );
    this.#partialDuration = this.#histogram(
      "kubeproxy_sync_partial_proxy_rules_duration_seconds",
      "SyncProxyRules latency in seconds for partial resyncs",
      SYNC_BUCKETS,
    );
    this.#lastSync = this.#gauge(
      "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
      "The last time proxy rules were successfully synced",
      FAMILY,
    );
    this.#lastQueued = this.#gauge(
      "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
      "The last time a sync of proxy rules was queued",
      FAMILY,
    );
    this.#programming = this.#histogram(
      "kubeproxy_network_programming_duration_seconds",
      "In-cluster network programming latency in seconds",
      PROGRAMMING_BUCKETS,
    );
    this.#nftFailures =
      options.backend === "nft"
        ? this.#counter("kubeproxy_sync_proxy_rules_nftables_sync_failures_total", "Cumulative proxy nftables sync failures", FAMILY)
        : undefined;
    this.#flowsDuration = this.#histogram(
      "kubeproxy_conntrack_reconciler_sync_duration_seconds",
      "Time to remove stale conntrack flows, in seconds",
      SYNC_BUCKETS,
    );
    this.#flowsDeleted = this.#counter(
      "kubeproxy_conntrack_reconciler_deleted_entries_total",
      "Cumulative conntrack flows deleted",
      FAMILY,
    );
    this.#healthz = this.#counter("kubeproxy_proxy_healthz_total", "Cumulative proxy healthz HTTP status", ["code"]);
    this.#livez = this.#counter("kubeproxy_proxy_livez_total", "Cumulative proxy livez HTTP status", ["code"]);
    this.#serviceChanges = this.#counter("kubeproxy_sync_proxy_rules_service_changes_total", "Cumulative service changes seen", []);
    this.#endpointChanges = this.#counter(
      "kubeproxy_sync_proxy_rules_endpoint_changes_total",
      "Cumulative endpoint slice changes seen",
      [],
    );
    this.#servicePending = this.#gauge("kubeproxy_sync_proxy_rules_service_changes_pending", "Service changes since the last sync", []);
    this.#endpointPending = this.#gauge(
      "kubeproxy_sync_proxy_rules_endpoint_changes_pending",
      "Endpoint slice changes since the last sync",
      [],
    );
    this.#objects = this.#gauge("turnout_objects", "Kernel objects in force", FAMILY);
    this.#put = this.#counter("turnout_objects_put_total", "Kernel objects written", FAMILY);
    this.#removed = this.#counter("turnout_objects_removed_total", "Kernel objects removed", FAMILY);
    this.#failures = this.#counter("turnout_sync_failures_total", "Failed syncs by error code", ["ip_family", "code"]);
    this.#quarantined = this.#gauge("turnout_quarantined_rows", "Service ports that the host refuses, wholly or in part", FAMILY);
    this.#failedObjects = this.#gauge("turnout_failed_objects", "Kernel objects that the host refuses by themselves", FAMILY);
    this.#countIssue = registerIssues(this.#set);
    const labels = ["traffic_policy", "ip_family"] as const;
    const help = "Service ports with a Local traffic policy and endpoints, but none on this node";
    this.#set.computed("gauge", "kubeproxy_sync_proxy_rules_no_local_endpoints_total", help, labels, () => this.#noLocal());
  }

  /** All metrics in the text format. */
  async text(): Promise<string> {
    return (await this.reply()).body;
  }

  /** What a scrape is answered with. */
  reply(): Promise<Reply> {
    this.#ofBackends.collect();
    return this.#set.reply();
  }

  /** Stop measuring. */
  close(): void {
    this.#set.close();
  }

  /** Say where a family's rows are read from when metrics are asked for; also notes the start of its loop. */
  watchRows(family: IPFamily, rows: () => Iterable<ServicePort>): void {
    this.#rows.set(family, rows);
    this.queued({ family, atMs: this.#nowMs() });
    // A counter that is absent until its first event can't be alerted on.
    for (const counter of [this.#nftFailures, this.#flowsDeleted, this.#put, this.#removed]) counter?.inc({ ip_family: family }, 0);
    this.#quarantined.set({ ip_family: family }, 0);
    this.#failedObjects.set({ ip_family: family }, 0);
  }

  /** Say where the numbers are read from that a family's backend counts itself. */
  watchBackend(family: IPFamily, read: () => readonly BackendMetric[]): void {
    this.#ofBackends.watch(family, read);
  }

  /** Count one API object that came or went. */
  objectChanged(kind: ObjectKind): void {
    if (kind === "Service") {
      this.#serviceChanges.inc();
      this.#servicePending.inc();
    } else if (kind === "EndpointSlice") {
      this.#endpointChanges.inc();
      this.#endpointPending.inc();
    }
  }

  /** Count one report about an API object; `object` is e.g. `Service shop/cart`. */
  objectIssue(object: string): void {
    this.#countIssue(object);
  }

  /** Count one answer of the health server. */
  probed(path: "healthz" | "livez", code: number): void {
    (path === "healthz" ? this.#healthz : this.#livez).inc({ code: String(code) });
  }

  /** @see SyncObserver */
  queued({ family, atMs }: { readonly family: IPFamily; readonly atMs: number }): void {
    this.#lastQueued.set({ ip_family: family }, atMs / 1000);
  }

  /** @see SyncObserver */
  synced(event: Parameters<SyncObserver["synced"]>[0]): void {
    const labels = { ip_family: event.family };
    this.#duration.observe(labels, event.durationMs / 1000);
    (event.full ? this.#fullDuration : this.#partialDuration).observe(labels, event.durationMs / 1000);
    for (const triggerMs of event.triggersMs) this.#programming.observe(labels, Math.max(0, event.atMs - triggerMs) / 1000);
    this.#objects.set(labels, event.objects);
    this.#put.inc(labels, event.put);
    this.#removed.inc(labels, event.removed);
    // What was deferred is waiting yet.
    if (event.deferred > 0) return;
    this.#lastSync.set(labels, event.atMs / 1000);
    this.#servicePending.set(0);
    this.#endpointPending.set(0);
  }

  /** @see SyncObserver */
  failed(event: Parameters<SyncObserver["failed"]>[0]): void {
    const labels = { ip_family: event.family };
    this.#duration.observe(labels, event.durationMs / 1000);
    this.#nftFailures?.inc(labels);
    this.#failures.inc({ ...labels, code: event.error.code });
  }

  /** @see SyncObserver */
  flowsForgotten(event: Parameters<SyncObserver["flowsForgotten"]>[0]): void {
    this.#flowsDuration.observe({ ip_family: event.family }, event.durationMs / 1000);
    this.#flowsDeleted.inc({ ip_family: event.family }, event.count);
  }

  /** @see SyncObserver */
  quarantined(event: Parameters<SyncObserver["quarantined"]>[0]): void {
    this.#quarantined.set({ ip_family: event.family }, event.rows.length);
    this.#failedObjects.set({ ip_family: event.family }, event.objects.length);
  }

  *#noLocal(): Readings<"traffic_policy" | "ip_family"> {
    for (const [ip_family, read] of this.#rows) {
      const { internal, external } = countNoLocalEndpoints(read());
      yield [{ traffic_policy: "internal", ip_family }, internal];
      yield [{ traffic_policy: "external", ip_family }, external];
    }
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram<Family> {
    return this.#set.histogram(name, help, FAMILY, buckets);
  }

  #gauge<L extends string>(name: string, help: string, labelNames: readonly L[]): Gauge<L> {
    return this.#set.gauge(name, help, labelNames);
  }

  #counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return this.#set.counter(name, help, labelNames);
  }
}
