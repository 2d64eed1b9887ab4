import { Metrics } from "@turnout/client/daemon";
import type { World } from "@turnout/core";
import { RecordingLog, TestClock } from "@turnout/core/testing";
import { loadBackend, loadKit } from "../registry.ts";

/** What the kernel says of its conntrack: the same everywhere, whatever host a test runs on. */
const PROC: Readonly<Record<string, string>> = {
  "/proc/net/stat/nf_conntrack": "entries invalid insert_failed drop early_drop\n0000002a 00000001 00000000 00000000 00000000\n",
  "/proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
};

/** What is counted of each sync. */
const SYNCED = {
  family: "IPv4",
  durationMs: 1,
  put: 1,
  removed: 0,
  queuedMs: [],
  waitingSinceMs: undefined,
  deferred: 0,
  drifted: 0,
  driftedSome: [],
  repaired: false,
} as const;

/** The page at /metrics of a proxy with a backend on its host in memory, which has synced in full and in part. */
export async function backendPage(name: string): Promise<string> {
  const module = await loadBackend(name, "");
  const kit = await loadKit(name, undefined, "");
  const world = "createFakeHost" in kit ? kit.createFakeHost().world : worldOfMaps();
  const { signal } = new AbortController();
  const dataplane = await module.open(module.parseOptions({}), world, signal);
  const backend = dataplane.family("IPv4");
  const clock = new TestClock();
  const metrics = new Metrics({ clock, version: "0.1.0", readText: (path) => PROC[path] });
  metrics.watchRows("IPv4", () => []);
  metrics.watchBackend("IPv4", async () => (await backend.metrics?.()) ?? []);
  const at = { objects: 1, triggersMs: [clock.nowMs()], atMs: clock.nowMs() };
  for (const full of [true, false]) metrics.synced({ ...SYNCED, ...at, full });
  const page = await metrics.text();
  metrics.close();
  await dataplane.close(signal);
  return page;
}

/** A world of eBPF in which each map is there, and holds nothing: its rules are played in the kernel alone. */
function worldOfMaps(): World {
  const map = { info: { name: "services", maxEntries: 1 }, memoryBytes: () => 1, lookup: () => undefined, close: () => undefined };
  const pinFiles = { inode: () => 1, takeOpening: () => false };
  const bpf = { bpf: { openMap: () => map }, pinFiles, mounts: () => ({ bpffs: "/bpf" }), objectFiles: {}, buildOf: () => "" };
  return { clock: new TestClock(), log: new RecordingLog(), ...bpf } as unknown as World;
}
