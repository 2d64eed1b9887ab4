import type { BackendMetric, IPFamily, ObjectKind, ServicePort, SyncObserver } from "@turnout/core";
import type { Reply } from "../health/health.ts";
import { BackendMetrics } from "./backend-metrics.ts";
import { registerChanges } from "./change-metrics.ts";
import { type FamilyMetrics } from "./family-metrics.ts";
import { registerFlows } from "./flow-metrics.ts";
import { registerIssues } from "./issue-metrics.ts";
import type { MetricSet } from "./metric-set.ts";
import { registerObjects } from "./object-metrics.ts";
import { registerProbes } from "./probe-metrics.ts";
import { processMetrics } from "./process-metrics.ts";
import { registerRows } from "./row-metrics.ts";
import { registerSyncs } from "./sync-metrics.ts";

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
  readonly #nowMs: () => number;
  readonly #parts: readonly FamilyMetrics[];

  /** Count one report about an API object; takes e.g. `Service shop/cart`. */
  readonly objectIssue: (object: string) => void = registerIssues(this.#set);

  /** Count one answer of the health server. */
  readonly probed: (path: "healthz" | "livez", code: number) => void = registerProbes(this.#set);

  constructor(options: { readonly nowMs: () => number }) {
    this.#nowMs = options.nowMs;
    this.#parts = [registerSyncs(this.#set), this.#changes, registerObjects(this.#set), registerFlows(this.#set)];
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
    this.#watchRows(family, rows);
    this.queued({ family, atMs: this.#nowMs() });
    for (const part of this.#parts) part.started?.(family);
  }

  /** Say where the numbers are read from that a family's backend counts itself. */
  watchBackend(family: IPFamily, read: () => readonly BackendMetric[]): void {
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
