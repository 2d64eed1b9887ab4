import { ProxyError } from "@turnout/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { toyEndpoint, toyRow } from "../../test-support/toys.ts";
import { Metrics } from "./metrics.ts";
import { countNoLocalEndpoints } from "./row-metrics.ts";

let made: Metrics | undefined;
afterEach(() => made?.close());

/** By the clock of the tests; the wall clock is `aheadMs` ahead of it. */
let nowMs = 0;
let aheadMs = 0;
beforeEach(() => ([nowMs, aheadMs] = [0, 0]));

function make(): Metrics {
  made = new Metrics({ clock: { nowMs: () => nowMs, aheadMs: () => aheadMs }, version: "0.1.0" });
  nowMs = 5_000;
  return made;
}

async function lines(metrics: Metrics): Promise<readonly string[]> {
  return (await metrics.text()).split("\n");
}

/** A sync, but for what it concerns. */
const SYNCED = {
  family: "IPv4",
  full: false,
  durationMs: 1,
  triggersMs: [],
  put: 0,
  removed: 0,
  queuedMs: [],
  waitingSinceMs: undefined,
  deferred: 0,
  drifted: 0,
  driftedSome: [],
  repaired: false,
  objects: 0,
} as const;

/** Those of kube-proxy's names are compared with what one serves (bench/kube-proxy/metrics.test.ts). */
const OURS = {
  gauge: ["objects", "source_up", "quarantined_rows", "failed_objects", "event_loop_lag_seconds"],
  counter: ["objects_put_total", "objects_removed_total", "objects_repaired_total", "sync_failures_total", "object_issues_total"],
} as const;

test("our own names have their types", async () => {
  const text = await lines(make());
  for (const type of ["gauge", "counter"] as const) for (const name of OURS[type]) expect(text).toContain(`# TYPE turnout_${name} ${type}`);
});

test("buckets are upstream's", async () => {
  const metrics = make();
  metrics.synced({ ...SYNCED, full: true, triggersMs: [0], atMs: 1_000 });
  const text = await lines(metrics);
  const bounds = (name: string): number[] =>
    text.flatMap((line) => (line.startsWith(`${name}_bucket`) ? [Number(/le="([^"]+)"/.exec(line)?.[1])] : [])).filter(Number.isFinite);
  expect(bounds("kubeproxy_sync_proxy_rules_duration_seconds")).toHaveLength(15);
  expect(bounds("kubeproxy_sync_proxy_rules_duration_seconds").at(-1)).toBeCloseTo(16.384);
  const programming = bounds("kubeproxy_network_programming_duration_seconds");
  expect([programming.length, programming[0], programming[2], programming.at(-1)]).toEqual([80, 0.25, 1, 300]);
});

test("a sync that was out of time is no successful one, and what waits waits on", async () => {
  const metrics = make();
  metrics.objectChanged("Service");
  const event = { ...SYNCED, objects: 3 };
  metrics.synced({ ...event, put: 3, deferred: 2, atMs: 1_000 });
  const deferred = await lines(metrics);
  expect(deferred).toContain("kubeproxy_sync_proxy_rules_service_changes_pending 1");
  expect(deferred.filter((line) => line.startsWith("kubeproxy_sync_proxy_rules_last_timestamp_seconds{"))).toEqual([]);
  metrics.synced({ ...event, put: 2, deferred: 0, atMs: 2_000 });
  expect(await lines(metrics)).toEqual(
    expect.arrayContaining([
      "kubeproxy_sync_proxy_rules_service_changes_pending 0",
      'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 2',
    ]),
  );
});

test("a sync is counted", async () => {
  const metrics = make();
  metrics.watchRows("IPv6", () => [toyRow("a", { externalLocal: true })]);
  metrics.objectChanged("Service");
  metrics.objectChanged("EndpointSlice");
  metrics.objectChanged("Node");
  expect(await lines(metrics)).toEqual(
    expect.arrayContaining([
      "kubeproxy_sync_proxy_rules_service_changes_pending 1",
      'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv6"} 5',
    ]),
  );
  const counted = { durationMs: 250, triggersMs: [1_000, 99_999], put: 3, removed: 2, drifted: 6, objects: 7, atMs: 3_000 };
  metrics.synced({ ...SYNCED, ...counted, family: "IPv6" });
  metrics.flowsForgotten({ family: "IPv6", count: 4, durationMs: 1 });
  metrics.quarantined({ family: "IPv6", rows: ["x"], objects: ["sysctl a", "sysctl b"] });
  metrics.probed("healthz", 503);
  metrics.probed("livez", 200);
  metrics.objectIssue("Service shop/cart");
  metrics.objectIssue("/etc/turnout/services.yaml:7");
  metrics.objectIssue("/etc/turnout/services.yaml:9");
  metrics.failed({ family: "IPv6", full: false, durationMs: 1, error: new ProxyError("timed_out", "late"), atMs: 1 });
  expect(await lines(metrics)).toEqual(
    expect.arrayContaining([
      'kubeproxy_sync_partial_proxy_rules_duration_seconds_sum{ip_family="IPv6"} 0.25',
      'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv6"} 2',
      'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv6"} 3',
      // The second trigger lies in the future: one of the clocks is wrong.
      'kubeproxy_network_programming_duration_seconds_sum{ip_family="IPv6"} 2',
      'kubeproxy_network_programming_duration_seconds_count{ip_family="IPv6"} 1',
      "kubeproxy_sync_proxy_rules_service_changes_pending 0",
      "kubeproxy_sync_proxy_rules_service_changes_total 1",
      "kubeproxy_sync_proxy_rules_endpoint_changes_total 1",
      'kubeproxy_sync_proxy_rules_no_local_endpoints_total{traffic_policy="external",ip_family="IPv6"} 1',
      'kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv6"} 4',
      'kubeproxy_proxy_healthz_total{code="503"} 1',
      'kubeproxy_proxy_livez_total{code="200"} 1',
      'turnout_objects{ip_family="IPv6"} 7',
      'turnout_objects_put_total{ip_family="IPv6"} 3',
      'turnout_objects_removed_total{ip_family="IPv6"} 2',
      'turnout_objects_repaired_total{ip_family="IPv6"} 6',
      'turnout_quarantined_rows{ip_family="IPv6"} 1',
      'turnout_failed_objects{ip_family="IPv6"} 2',
      'turnout_sync_failures_total{ip_family="IPv6",code="timed_out"} 1',
      'turnout_sync_failures_total{ip_family="IPv6",code="tool_failed"} 0',
      'turnout_object_issues_total{kind="Service"} 1',
      'turnout_object_issues_total{kind="File"} 2',
      'turnout_object_issues_total{kind="Node"} 0',
    ]),
  );
});

test("times are as the wall clock is set when they are read, also when it was set after what they are of", async () => {
  const metrics = make();
  metrics.watchRows("IPv4", () => []);
  metrics.heard("Service");
  metrics.synced({ ...SYNCED, atMs: 4_000 });
  const times = async (): Promise<readonly string[]> => (await lines(metrics)).filter((line) => /^\w+_timestamp_seconds\{/.test(line));
  const at = (offset: number): readonly string[] => [
    `kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} ${4 + offset}`,
    `kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} ${5 + offset}`,
    `turnout_source_last_heard_timestamp_seconds{kind="Service"} ${5 + offset}`,
  ];
  expect(await times()).toEqual(expect.arrayContaining([...at(0)]));
  aheadMs = 1_795_000_000_000;
  expect(await times()).toEqual(expect.arrayContaining([...at(1_795_000_000)]));
});

test("the start of the process is as the wall clock is set now, and the same at each scrape", async () => {
  const metrics = make();
  const starts = async (): Promise<number> =>
    Number((await lines(metrics)).find((line) => line.startsWith("process_start_time_seconds "))?.split(" ")[1]);
  const before = await starts();
  expect(await starts()).toBe(before);
  const hour = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 3_600_000);
  expect((await starts()) - before).toBeGreaterThan(3_500);
  hour.mockRestore();
});

/** 2026-11-27 in ms since the epoch. */
const TODAY_MS = 1_795_737_600_000;

test.each([
  ["a change of a second ago", TODAY_MS, 59_000, 1],
  ["one of the moment in which the process began", TODAY_MS, 0, 60],
  ["one in the future: this clock or the other one is wrong", TODAY_MS, 60_001, undefined],
  ["one from before the process began", TODAY_MS, -1, undefined],
  ["one of today by a clock that stands in 1970", 0, TODAY_MS + 59_000, undefined],
  ["one of years ago by a clock in the future", TODAY_MS + 28e9, 59_000 - 28e9, undefined],
])("the time to program a change is not measured where it is impossible: %s", async (_name, startMs, triggerMs, seconds) => {
  const metrics = make();
  aheadMs = startMs;
  metrics.synced({ ...SYNCED, triggersMs: [startMs + triggerMs], atMs: 60_000 });
  const found = (await lines(metrics)).filter((line) => /^kubeproxy_network_programming_duration_seconds_(?:sum|count)/.test(line));
  const of = (what: string, value: number): string => `kubeproxy_network_programming_duration_seconds_${what}{ip_family="IPv4"} ${value}`;
  expect(found).toEqual(seconds === undefined ? [] : [of("sum", seconds), of("count", 1)]);
});

test.each([
  ["a Cluster policy never counts", {}, 0, 0],
  ["a local endpoint", { internalLocal: true, local: [0] }, 0, 0],
  ["none local", { internalLocal: true, externalLocal: true }, 1, 1],
  ["no endpoint anywhere", { externalLocal: true, endpoints: [] }, 0, 0],
  ["only unready ones", { externalLocal: true, endpoints: [toyEndpoint("10.1.0.5", { ready: false, serving: false })] }, 0, 0],
  [
    "a terminating one that still serves",
    { externalLocal: true, endpoints: [toyEndpoint("10.1.0.5", { ready: false, terminating: true })] },
    0,
    1,
  ],
])("countNoLocalEndpoints: %s", (_name, row, internal, external) => {
  expect(countNoLocalEndpoints([toyRow("a", row)])).toEqual({ internal, external });
});

test("what a backend counts itself is read when somebody asks, of each family, as counter or gauge", async () => {
  const metrics = make();
  let rules = 3;
  const reported = (failures: number) => () => [
    { name: "kubeproxy_sync_proxy_rules_iptables_restore_failures_total", help: "h", kind: "counter" as const, value: failures },
    { name: "kubeproxy_sync_proxy_rules_iptables_total", help: "h", kind: "gauge" as const, labels: { table: "nat" }, value: rules },
  ];
  metrics.watchBackend("IPv4", reported(1));
  metrics.watchBackend("IPv6", reported(0));
  expect(await lines(metrics)).toContain('kubeproxy_sync_proxy_rules_iptables_total{table="nat",ip_family="IPv4"} 3');
  rules = 2;
  const text = await lines(metrics);
  expect(text).toContain("# TYPE kubeproxy_sync_proxy_rules_iptables_restore_failures_total counter");
  expect(text).toContain('kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"} 1');
  expect(text).toContain('kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv6"} 0');
  expect(text).toContain('kubeproxy_sync_proxy_rules_iptables_total{table="nat",ip_family="IPv6"} 2');
});

test("parts of the source are told as they were last", async () => {
  const metrics = make();
  metrics.sources.note("Service", "");
  metrics.sources.note("EndpointSlice", "");
  metrics.sources.note("EndpointSlice", "connection refused");
  expect((await lines(metrics)).filter((line) => line.startsWith("turnout_source_up"))).toEqual([
    'turnout_source_up{part="Service"} 1',
    'turnout_source_up{part="EndpointSlice"} 0',
  ]);
});
