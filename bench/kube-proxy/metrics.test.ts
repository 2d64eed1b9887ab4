import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { iptablesModule } from "@turnout/backend-iptables";
import { createFakeHost as iptablesHost } from "@turnout/backend-iptables/testing";
import { nftModule } from "@turnout/backend-nft";
import { createFakeHost as nftHost } from "@turnout/backend-nft/testing";
import { Metrics } from "@turnout/client/daemon";
import type { BackendMetric } from "@turnout/core";
import { metricFamilies, type MetricFamily } from "./metric-families.ts";

const { signal } = new AbortController();

/** What the real kube-proxy serves and Turnout does not, with the reason; docs/operations.md says the same. */
const EXCEPTIONS: readonly (readonly [names: RegExp, reason: string])[] = [
  [/^(aggregator|apiserver)_/, "of the API server's library, which kube-proxy links and does not use: always 0"],
  [/^cardinality_enforcement_/, "of component-base's allow-list of label values, which Turnout does not have"],
  [/^rest_client_transport_cert_rotation_gc_calls_total$/, "of goroutines that Go's collector ends"],
  [/^go_(cgo|cpu_classes|gc|godebug|memory_classes|sched|sync)_(?!duration_seconds$)/, "of Go's runtime: V8 tells nothing of the kind"],
  [/^go_memstats_(alloc_bytes|frees|mallocs)_total$/, "V8 does not count allocations"],
  [/^go_memstats_(heap_objects|heap_released_bytes|next_gc_bytes)$/, "V8 does not tell it"],
  [/^go_memstats_(buck_hash|gc|mcache|mspan|other|stack)_/, "of Go's allocator, which has such parts"],
];

const HOSTS = {
  iptables: async () => {
    // The fake kernel has no counters; kube-proxy's was one that has.
    const { world } = iptablesHost();
    const counting = { ...world, netlink: { ...world.netlink, counterPackets: () => Promise.resolve(0) } };
    return (await iptablesModule.open(iptablesModule.parseOptions({}), counting, signal)).family("IPv4");
  },
  nftables: async () => (await nftModule.open(nftModule.parseOptions({}), nftHost().world, signal)).family("IPv4"),
};

/** Ours, after one event of each kind: kube-proxy has a label only once it counted something. */
function scrape(metrics: Metrics, read: () => readonly BackendMetric[] | Promise<readonly BackendMetric[]>): Promise<string> {
  const host = { verb: "GET", host: "10.0.0.1:6443" };
  metrics.watchRows("IPv4", () => []);
  metrics.watchBackend("IPv4", read);
  const synced = {
    family: "IPv4",
    durationMs: 1,
    triggersMs: [1],
    put: 0,
    removed: 0,
    queuedMs: [],
    waitingSinceMs: undefined,
    deferred: 0,
    drifted: 0,
    driftedSome: [],
    repaired: false,
    objects: 0,
    atMs: 1,
  } as const;
  for (const full of [true, false]) metrics.synced({ ...synced, full });
  metrics.flowsForgotten({ family: "IPv4", count: 0, durationMs: 1 });
  for (const path of ["healthz", "livez"] as const) metrics.probed(path, 200);
  metrics.slis.checked("healthz", "ping", true);
  metrics.restClient.answered(host, 200);
  metrics.restClient.finished(host, 1, 1, 1);
  metrics.restClient.throttled(host, 0);
  metrics.restClient.transportCreated(1);
  return metrics.text();
}

describe.each(["iptables", "nftables"] as const)("what the real kube-proxy 1.36.3 serves in mode %s", (mode) => {
  const recorded = JSON.parse(readFileSync(new URL(`metrics/${mode}.json`, import.meta.url), "utf8")) as Record<string, MetricFamily>;
  const features = (): readonly { name: string; stage: "BETA"; enabled: boolean }[] => [
    { name: "WatchList", stage: "BETA", enabled: true },
  ];
  const metrics = new Metrics({ clock: { nowMs: () => 1 }, version: "0.1.0", features });
  let ours: ReadonlyMap<string, MetricFamily>;
  beforeAll(async () => {
    const backend = await HOSTS[mode]();
    const main = metricFamilies(await scrape(metrics, () => backend.metrics?.() ?? []));
    ours = new Map([...metricFamilies((await metrics.slis.reply()).body), ...main]);
  });
  afterAll(() => metrics.close());

  const excepted = (name: string): boolean => EXCEPTIONS.some(([names]) => names.test(name));

  it("was recorded", () => expect(Object.keys(recorded).length).toBeGreaterThan(150));

  it.each(Object.keys(recorded).filter((name) => !excepted(name)))("%s, with its type, HELP and labels", (name) => {
    const [theirs, own] = [recorded[name], ours.get(name)];
    if (theirs === undefined) throw new Error(`${name} was not recorded`);
    expect(own).toMatchObject({ type: theirs.type });
    // What is not quite the same here says so after Go's words.
    expect(own?.help.replace(/; here .*$/, "").replace(/\.$/, "")).toBe(theirs.help.replace(/\.$/, ""));
    expect(own?.labels).toEqual(theirs.labels);
  });

  it("and nothing that is excepted is there after all", () => {
    expect([...ours.keys()].filter((name) => excepted(name))).toEqual([]);
  });
});

it.each(EXCEPTIONS)("the exception %s is about something that kube-proxy serves", (names) => {
  const recorded = readFileSync(new URL("metrics/iptables.json", import.meta.url), "utf8");
  expect(Object.keys(JSON.parse(recorded) as object).some((name) => names.test(name))).toBe(true);
});
