import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Answer } from "@turnout/core";
import { createCluster } from "@turnout/lab";
import { Crowd } from "../crowd.ts";
import { childTicks, threadsTimeUs, treeTimeMs } from "../cpu-time.ts";
import { inFolder } from "../folder.ts";
import { VICTIMS } from "../healing/hands.ts";
import { createHealingStage } from "../healing/stage.ts";
import type { HealingStage } from "../healing/stage.ts";
import type { Layout } from "../layouts.ts";
import { watchCluster } from "../kpng-client.ts";
import type { KpngFirstState } from "../kpng-client.ts";
import { memoryNow, residentBytes, sampleMemory } from "../memory-sampler.ts";
import type { MemorySampler } from "../memory-sampler.ts";
import { openRole, resultOf, runRole, TURNOUT } from "../role-process.ts";
import type { BackendParameters } from "../roles/backend-run.ts";
import type { DaemonParameters, DaemonRun } from "../roles/daemon.ts";
import type { RelayReport } from "../roles/relay.ts";
import type { TrafficParameters, TrafficSamples, TrafficTarget } from "../roles/traffic.ts";
import { turnout } from "../proxies.ts";
import { FROM } from "../traffic-targets.ts";
import { measureTraffic } from "../traffic-turns.ts";
import { giveAddresses } from "../traffic-nodes.ts";
import { openConnection } from "../watch-client.ts";
import { openAll, runWatch } from "../watch-run.ts";
import type { WatchRun } from "../watch-run.ts";
import { clusterIP, endpointsOf, SERVICE_PORT, TARGET_PORT } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { measureClientInstall } from "./client-install.ts";
import { measureUserspace } from "./userspace.ts";

const KIB = 1024;
const TICK_MS = 10;
/** Of the client of `connect`. */
const CLIENT = "11.255.0.2";
/** Below, the memory of a node-state server says nothing about one watcher. */
const MANY = 1_000;

/** What measures do that are more than one role: from a case's parameters to one result. */
export const MEASURES: Readonly<Record<string, (parameters: never, progress: (text: string) => void) => Promise<unknown>>> = {
  start,
  memory,
  ebpf,
  why,
  counting,
  connect,
  kpng,
  relay,
  watchers,
  "client-install": measureClientInstall,
  userspace: measureUserspace,
};

async function start(parameters: DaemonParameters): Promise<unknown> {
  const found: Record<string, number> = {};
  const onPhase = async (name: string, pid: number): Promise<void> => {
    if (name === "in-force") found["cpuMs"] = threadsTimeUs(pid) / 1000;
    if (name !== "idle") return;
    found["ownBytes"] = residentBytes(readFileSync(`/proc/${pid}/statm`, "utf8"));
    found["treeBytes"] = memoryNow(pid);
  };
  return { ...(await runRole<DaemonRun>("daemon", parameters, { onPhase })), ...found };
}

/** Resident bytes of the whole process tree. */
async function memory(parameters: DaemonParameters): Promise<unknown> {
  const found: Record<string, number> = {};
  let sampler: MemorySampler | undefined;
  const onPhase = async (name: string, pid: number): Promise<void> => {
    sampler ??= sampleMemory(pid);
    found[`${name} now`] = sampler.now();
    found[`${name} peak`] = sampler.resetPeak();
  };
  try {
    const { startMs } = await runRole<DaemonRun>("daemon", parameters, { onPhase });
    const [peak, after, peakInChanges, afterChanges] = ["in-force peak", "idle now", "changed peak", "idle-again now"].map(
      (name) => found[name],
    );
    return { startMs, peak, after, peakInChanges, afterChanges };
  } finally {
    sampler?.stop();
  }
}

/** On a new node of the laboratory, with two pods; then a restart. */
async function ebpf(parameters: BackendParameters): Promise<unknown> {
  const cluster = await createCluster({ nodes: [{ name: "node1", pods: 2 }], cgroups: ["node1"] });
  try {
    const place = cluster.node("node1");
    const run = await runRole("backend-run", parameters, { place });
    // What the changes have left away is missing: the second process finds it, and begins with the whole.
    await runRole("backend-restore", parameters, { place });
    return { run, adoption: await runRole("backend-adopt", parameters, { place }) };
  } finally {
    cluster.destroy();
  }
}

/** Proxies by name, with the name of those that do not count: each is measured next to what counts. */
const COUNTING: Readonly<Record<string, { readonly plain?: string; readonly flags: readonly string[] }>> = {
  nft: { flags: ["--backend", "nft"] },
  "nft, counting": { plain: "nft", flags: ["--backend", "nft", "--service-metrics", "100"] },
  "nft, counting bytes": { plain: "nft", flags: ["--backend", "nft", "--backend-option", "count-bytes=true"] },
  ebpf: { flags: ["--backend", "ebpf"] },
  "ebpf, counting": { plain: "ebpf", flags: ["--backend", "ebpf", "--service-metrics", "100"] },
};

/** What it takes to count connections, bytes, rejects and drops for each Service: by rules and place of the client. */
async function counting(
  { shape, rounds }: { readonly shape: Shape; readonly rounds: number },
  progress: (text: string) => void,
): Promise<unknown> {
  const rules = Object.entries(COUNTING).map(([name, { flags }]) => ({ name, proxy: turnout(...flags) }));
  const length = { rounds, lengthMs: 200, connects: 200, measures: ["connects", "requests", "bulk", "packets"], asked: ["plain"] } as const;
  const data = await measureTraffic({ rules, shape, from: ["pod-1-1", "client1"], length }, { progress });
  const plain = (samples: TrafficSamples | undefined): object => ({ connectMs: samples?.connectMs["plain"], ...samples?.rates["plain"] });
  const lines = data.map((one) => {
    const base = data.find(({ from, rules: name }) => from === one.from && name === COUNTING[one.rules]?.plain);
    return [`${one.rules}, ${one.from}`, { rules: one.rules, from: FROM[one.from], ...plain(one.samples), base: plain(base?.samples) }];
  });
  return Object.fromEntries(lines) as unknown;
}

/** Which rules the node has, and how many connects are timed to each target. */
interface ConnectParameters {
  readonly shape: Shape;
  readonly rules: "turnout" | "none" | Layout;
  readonly count: number;
}

/** Time connects from a pod over its node to a server in another: to an endpoint itself, and over the first and the last Service. */
async function connect({ shape, rules, count }: ConnectParameters): Promise<unknown> {
  const cluster = await createCluster({ nodes: [{ name: "node1", pods: 2 }], families: ["IPv4"], clients: 0 });
  try {
    const [node, client, server] = [cluster.node("node1"), cluster.place("pod-1-1"), cluster.place("pod-1-2")];
    const shared = { ...shape, shared: true };
    const pods = endpointsOf(0, shared).map(({ ip }) => ip);
    await giveAddresses(node, server, "veth2", pods);
    // A pod of this node by its address.
    await giveAddresses(node, client, "veth1", [CLIENT]);
    await client.run("ip", ["route", "replace", "default", "via", "169.254.1.1", "dev", "eth0", "onlink", "src", CLIENT]);
    if (rules === "turnout") await runRole("backend-run", { backend: "nft", shape: shared, changes: 0 }, { place: node });
    else if (rules !== "none") await runRole("baseline", { layout: rules, shape: shared, changes: 0 }, { place: node });
    const serverPid = await openRole("traffic-server", {}, { place: server }).phase("listening");
    const target = (name: string, address: string, tcp: number): TrafficTarget => ({
      name,
      places: [{ address, tcp, udp: tcp }],
      measures: ["connect"],
    });
    const services = [target("first", clusterIP(0), SERVICE_PORT), target("last", clusterIP(shape.services - 1), SERVICE_PORT)];
    const targets = [target("direct", pods[0] ?? "", TARGET_PORT), ...(rules === "none" ? [] : services)];
    const parameters: TrafficParameters = { targets, measures: [], rounds: 1, lengthMs: 0, connects: count, serverPid };
    return (await runRole<TrafficSamples>("traffic-client", parameters, { place: client })).connectMs;
  } finally {
    cluster.destroy();
  }
}

/** Which proxy is asked, and how often. */
interface WhyParameters {
  readonly shape: Shape;
  readonly victim?: string;
  readonly flags?: readonly string[];
  readonly questions: number;
}

async function why({ shape, victim = "", flags = VICTIMS[victim]?.flags ?? [], questions }: WhyParameters): Promise<unknown> {
  const stage = await createHealingStage(flags, shape);
  try {
    // The first loads what only questions need, in the proxy too.
    await ask(stage);
    const asked: Readonly<Record<"clockMs" | "commandMs" | "proxyMs", number>>[] = [];
    for (let question = 0; question < questions; question++) asked.push(await ask(stage));
    const all = (name: keyof (typeof asked)[number]): readonly number[] => asked.map((one) => one[name]);
    return { clockMs: all("clockMs"), commandMs: all("commandMs"), proxyMs: all("proxyMs") };
  } finally {
    await stage.destroy();
  }
}

/** @throws {Error} when the answer is another than that all is well: then something else was measured. */
async function ask({ cluster, node, proxy }: HealingStage): Promise<Readonly<Record<"clockMs" | "commandMs" | "proxyMs", number>>> {
  const pid = proxy.pid ?? 0;
  // Of children that have ended and were waited for.
  const endedTicks = (): number => childTicks(readFileSync("/proc/self/stat", "utf8"));
  const [proxyMs, ticks, sinceMs] = [treeTimeMs(pid), endedTicks(), performance.now()];
  const from = cluster.place("pod-1-1").address("IPv4");
  const child = node.spawn(TURNOUT, ["why", from, `${clusterIP(0)}:${SERVICE_PORT}`, "-o", "json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (child.stdout === null) throw new Error("the command has no output");
  const [printed] = await Promise.all([text(child.stdout), once(child, "exit")]);
  const clockMs = performance.now() - sinceMs;
  const { causes, unseen, steps } = JSON.parse(printed) as Answer;
  const isWhole = steps.some(({ says }) => /are in the kernel, complete|has all that it needs/.test(says));
  if (unseen.length > 0 || !isWhole) throw new Error(`not the whole answer: ${JSON.stringify({ causes, unseen, steps })}`);
  return { clockMs, commandMs: (endedTicks() - ticks) * TICK_MS, proxyMs: treeTimeMs(pid) - proxyMs };
}

/** The first watcher, for whom everything is made, and those after it. */
async function kpng({ shape, watchers: count }: { readonly shape: Shape; readonly watchers: number }): Promise<unknown> {
  return await inFolder(async (folder) => {
    const socket = join(folder, "node.sock");
    const server = openRole("kpng-server", { socket, shape, watchers: count + 1 }, { namespace: "same" });
    try {
      await server.phase("serving");
      const connection = openConnection(socket);
      const states: KpngFirstState[] = [];
      for (let watcher = 0; watcher <= count; watcher++) {
        server.go();
        await server.phase("watcher");
        states.push(await watchCluster(connection));
      }
      server.go();
      const cpuMs = await resultOf<readonly number[]>(server);
      connection.close();
      const [first, ...further] = states.map(({ ms }, index) => ({ ms, cpuMs: cpuMs[index] ?? NaN }));
      const { messages, bytes } = states[0] ?? {};
      const samples = { ms: further.map(({ ms }) => ms), cpuMs: further.map((one) => one.cpuMs) };
      return { first: { ...first, messages, bytes }, further: { ...samples, messages, bytes } };
    } finally {
      server.kill();
    }
  });
}

type RelayCaseParameters = Pick<WatchRun, "watchers" | "first" | "shape">;

/** What one more node costs a relay. */
async function relay({ shape, watchers: nodes, first }: RelayCaseParameters): Promise<unknown> {
  return await inFolder(async (folder) => {
    const [behind, socket] = [join(folder, "server.sock"), join(folder, "relay.sock")];
    const server = openRole("stateServer", { socket: behind, shape, changes: 0, stormMs: 0 }, { namespace: "same" });
    const relayed = openRole("relay", { behind, socket }, { namespace: "same" });
    await Promise.all([server.phase("serving"), relayed.phase("serving")]);
    const crowd = new Crowd(socket, nodes);
    try {
      await openAll(crowd, { first, watchers: nodes, nodes: "different" }, async () => {
        relayed.go();
        await relayed.phase("shared");
      });
      relayed.go();
      const { shared, all, reportingCpuMs } = await resultOf<RelayReport>(relayed);
      const each = (of: "heapBytes" | "residentBytes"): number => (all[of] - shared[of]) / nodes / KIB;
      return { nodes, heapKib: each("heapBytes"), residentKib: each("residentBytes"), cpuMs: reportingCpuMs / nodes };
    } finally {
      crowd.close();
      server.kill();
      relayed.kill();
    }
  });
}

async function watchers(run: WatchRun): Promise<unknown> {
  const { stateServer, arrivalsMs, ...seen } = await runWatch(run);
  const { shared, all, changedMs, ...server } = stateServer;
  const each = (of: "heapBytes" | "residentBytes"): number => (all[of] - shared[of]) / run.watchers / KIB;
  const memoryEach =
    run.watchers < MANY ? { serverBytes: all.residentBytes } : { heapKib: each("heapBytes"), residentKib: each("residentBytes") };
  const latenciesMs = arrivalsMs.flatMap((arrivals, change) => arrivals.map((arrivalMs) => arrivalMs - (changedMs[change] ?? 0)));
  return { watchers: run.watchers, ...server, ...memoryEach, latenciesMs, ...seen };
}
