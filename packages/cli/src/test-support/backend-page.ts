import { setImmediate } from "node:timers/promises";
import { STAGE_ADDRESSES, UPLINK } from "@turnout/conformance";
import type { FakeHost } from "@turnout/conformance";
import { loadConfig, Metrics, run, runConfig } from "@turnout/client/daemon";
import { createFeed, FAMILIES, OBJECT_KINDS, Store, type BackendModule, type World } from "@turnout/core";
import { fixtureObjects, rawNode, RecordingLog, TestClock, upsertRaw, type RawObject, type ServiceFixture } from "@turnout/core/testing";
import { loadBackend, loadKit } from "../registry.ts";

const local = { internalTrafficPolicy: "Local" };
const guarded = { type: "LoadBalancer", loadBalancerSourceRanges: ["192.0.2.0/24"] };
const SERVICES: readonly ServiceFixture[] = [
  { name: "cart", number: 1, local: 1, remote: 1 },
  { name: "query", number: 2, protocol: "UDP", local: 1 },
  { name: "empty", number: 3 },
  { name: "away", number: 4, spec: local, remote: 1 },
  { name: "shop", number: 5, spec: guarded, loadBalancerIPs: ["203.0.113.5"], local: 1 },
];

/** A kernel with one CPU that tracks connections. */
const PROC: Readonly<Record<string, string>> = {
  "/proc/net/stat/nf_conntrack": "entries invalid insert_failed drop early_drop\n0000002a 00000001 00000000 00000000 00000000\n",
  "/proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
};

/** As the endpoint slice controller writes it: what the time until rules are in force is counted from. */
const TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time";

/** A change after the first sync: times are counted of changes that the process has seen. */
const SCALED: ServiceFixture = { name: "cart", number: 1, local: 2, remote: 1 };

/**
 * Have a backend that comes with turnout serve a few Services on its host in memory, send it some packets, and give what a scrape then answers; of one
 * that has none, what it tells of BPF maps that are there.
 */
export async function backendPage(name: string): Promise<string> {
  const { createWorld: _createWorld, ...module } = await loadBackend(name, "");
  const kit = await loadKit(name, undefined, "");
  if (!("createFakeHost" in kit)) return await pageOfMaps(module);
  const host = kit.createFakeHost();
  const store = filledStore();
  const flags = { "healthz-bind-address": "", "metrics-bind-address": "", "cluster-cidr": "10.1.0.0/16" };
  const loaded = loadConfig({ flags, file: undefined, hostname: "node1" });
  const config = runConfig(loaded, module);
  const { nodeName, settings } = config;
  const { clock } = host.world;
  const metrics = new Metrics({ clock, version: "0.1.0", readText: (path) => PROC[path] });
  const stop = new AbortController();
  const running = run(module, {
    config,
    feed: (family) => createFeed(store, { nodeName, family, settings, report: () => undefined }),
    world: host.world,
    hostAddresses: () => STAGE_ADDRESSES.map(({ ip }) => ip),
    signal: stop.signal,
    eligibility: () => ({ isEligible: true, reason: "" }),
    metrics,
  });
  try {
    await Promise.race([running, active(host, metrics, "kubeproxy_sync_proxy_rules_last_timestamp_seconds")]);
    for (const raw of fixtureObjects(SCALED)) upsertRaw(store, triggered(raw, clock.nowMs()));
    await Promise.race([running, active(host, metrics, "kubeproxy_network_programming_duration_seconds_count")]);
    sendPackets(host);
    return await metrics.text();
  } finally {
    stop.abort();
    const ended = new AbortController();
    void running.finally(() => ended.abort());
    while (!ended.signal.aborted) await pass(host);
    metrics.close();
  }
}

/** The backend's own metrics, where every map that it looks for is pinned. */
async function pageOfMaps(module: BackendModule): Promise<string> {
  const map = { info: { name: "services", maxEntries: 1 }, memoryBytes: () => 1, lookup: () => undefined, close: () => undefined };
  const pinFiles = { inode: () => 1, takeOpening: () => false };
  const clock = new TestClock();
  const world = {
    clock,
    log: new RecordingLog(),
    bpf: { openMap: () => map },
    pinFiles,
    mounts: () => ({ bpffs: "/bpf" }),
    objectFiles: {},
    buildOf: () => "",
  };
  const { signal } = new AbortController();
  const dataplane = await module.open(module.parseOptions({}), world as unknown as World, signal);
  const metrics = (await dataplane.family("IPv4").metrics?.()) ?? [];
  return metrics
    .map(({ name, help, labels = {}, value, kind }) => {
      const texts = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
      return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${name}{${texts.join()}} ${value}\n`;
    })
    .join("");
}

function filledStore(): Store {
  const store = new Store({ report: () => undefined });
  const objects = SERVICES.flatMap((service) => fixtureObjects(service));
  for (const raw of [rawNode("node1", { addresses: ["172.18.0.1", "fd00:18::1"] }), ...objects]) upsertRaw(store, raw);
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  return store;
}

function triggered(raw: RawObject, atMs: number): RawObject {
  return { ...raw, metadata: { ...(raw["metadata"] as object), annotations: { [TRIGGER]: new Date(atMs).toISOString() } } };
}

/** Wait until a family has this metric, which it has once something is in force. */
async function active(host: FakeHost, metrics: Metrics, metric: string): Promise<void> {
  const isApplied = async (): Promise<boolean> => {
    const page = await metrics.text();
    return FAMILIES.some((family) => page.includes(`${metric}{ip_family="${family}"}`));
  };
  for (let turn = 0; turn < 200; turn += 1) {
    if (await isApplied()) return;
    await pass(host);
  }
  throw new Error(`no family's rules came into force: there is no ${metric}`);
}

/** Let a little time pass on the host, and whatever waits for nothing go on. */
async function pass(host: FakeHost): Promise<void> {
  await host.advance(100);
  await setImmediate();
}

function sendPackets(host: FakeHost): void {
  const common = { family: "IPv4", source: "172.18.0.1", port: 80, link: "" } as const;
  for (const number of [1, 3, 4]) host.connect({ ...common, protocol: "TCP", destination: `10.96.0.${number}` }, () => 0);
  host.connect({ ...common, protocol: "UDP", destination: "10.96.0.2" }, () => 0);
  host.connect({ ...common, protocol: "TCP", source: "198.51.100.9", destination: "203.0.113.5", link: UPLINK }, () => 0);
}
