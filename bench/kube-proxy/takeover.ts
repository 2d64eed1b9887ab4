import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@turnout/core";
import { createCluster, nodeManifests, RANGES, serviceManifest, sliceManifests, startClusterApi } from "@turnout/lab";
import type { Agent, Cluster, NodePlace, ServiceManifest, Transport } from "@turnout/lab";
import { endOf, TURNOUT } from "../role-process.ts";
import { kubeProxyConfig, kubeProxySync } from "./process.ts";
import { followSyncs } from "./sync-log.ts";
import type { ProxySync } from "./sync-log.ts";
import { savedLines, saveText } from "./save.ts";
import { placeTools } from "./tools.ts";
import type { Variant } from "./tools.ts";

const NODE = "node1";
const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
const SERVER_PORT = 8080;
/** Attempts of each source between two events. */
const ATTEMPTS = 150;

const both = (v4: string, v6: string): readonly string[] => [v4, v6];

const SERVICES: readonly (ServiceManifest & { readonly endpoints: readonly string[] })[] = [
  {
    name: "web",
    clusterIPs: both("10.96.0.1", "fd00:96::1"),
    ports: [{ name: "tcp", port: 80, targetPort: SERVER_PORT, nodePort: 30_001 }],
    externalIPs: both("198.51.100.1", "fd00:198::1"),
    ingress: both("198.51.100.11", "fd00:198::11").map((ip) => ({ ip })),
    endpoints: ["pod-1-2", "pod-2-1"],
  },
  {
    name: "local",
    clusterIPs: both("10.96.0.2", "fd00:96::2"),
    ports: [{ name: "tcp", port: 80, targetPort: SERVER_PORT, nodePort: 30_002 }],
    ingress: both("198.51.100.12", "fd00:198::12").map((ip) => ({ ip })),
    sourceRanges: [RANGES.clients.IPv4, RANGES.clients.IPv6],
    externalTrafficPolicy: "Local",
    healthCheckNodePort: 32_002,
    endpoints: ["pod-1-2", "pod-2-1"],
  },
  {
    name: "sticky",
    clusterIPs: both("10.96.0.3", "fd00:96::3"),
    ports: [{ name: "tcp", port: 80, targetPort: SERVER_PORT }],
    affinitySeconds: 600,
    endpoints: ["pod-1-2", "pod-2-1", "pod-2-2"],
  },
  {
    name: "dns",
    clusterIPs: both("10.96.0.4", "fd00:96::4"),
    ports: [{ name: "udp", protocol: "UDP", port: 53, targetPort: SERVER_PORT }],
    endpoints: ["pod-1-2", "pod-2-1"],
  },
];

interface Source {
  readonly from: string;
  readonly addresses: readonly string[];
  readonly port: number;
  readonly transport: Transport;
}

const SOURCES: readonly Source[] = [
  { from: "pod-1-1", addresses: both("10.96.0.1", "fd00:96::1"), port: 80, transport: "TCP" },
  { from: "node1", addresses: both("10.96.0.1", "fd00:96::1"), port: 80, transport: "TCP" },
  { from: "client1", addresses: both("172.18.0.1", "fd00:18::1"), port: 30_001, transport: "TCP" },
  { from: "client1", addresses: both("198.51.100.1", "fd00:198::1"), port: 80, transport: "TCP" },
  { from: "client1", addresses: both("198.51.100.12", "fd00:198::12"), port: 80, transport: "TCP" },
  { from: "client1", addresses: both("172.18.0.1", "fd00:18::1"), port: 30_002, transport: "TCP" },
  { from: "pod-1-1", addresses: both("198.51.100.11", "fd00:198::11"), port: 80, transport: "TCP" },
  { from: "pod-1-1", addresses: both("10.96.0.3", "fd00:96::3"), port: 80, transport: "TCP" },
  { from: "pod-1-1", addresses: both("10.96.0.4", "fd00:96::4"), port: 53, transport: "UDP" },
];

/**
 * See what a change of proxies does to traffic and rules: kube-proxy, killed, Turnout, killed, kube-proxy again, with the connections of all kinds of
 * clients going on. `KUBE_PROXY=path node --conditions=@turnout/source bench/kube-proxy/takeover.ts legacy|nft`; needs root, and the command built.
 */
async function takeOver(binary: string, variant: Variant): Promise<boolean> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-takeover-"));
  const cluster = await createCluster({ nodes: [1, 2].map((node) => ({ name: `node${node}`, pods: 2 })), clients: 1 });
  try {
    const kubeconfig = await provide(cluster, directory);
    const tools = await placeTools(directory, variant);
    const node = cluster.node(NODE);
    const config = join(directory, "config.json");
    const fields = { clusterCIDR: `${RANGES.pods.IPv4},${RANGES.pods.IPv6}` };
    await writeFile(config, kubeProxyConfig({ mode: "iptables", nodeName: NODE, kubeconfig, fields }));
    const env = { PATH: `${tools}:${process.env["PATH"] ?? ""}` };
    const start = {
      "kube-proxy": () => started(node, env, binary, ["--config", config], kubeProxySync),
      turnout: () => started(node, env, TURNOUT, turnoutArguments(kubeconfig, fields.clusterCIDR), turnoutSync),
    };
    let proxy = await start["kube-proxy"]();
    let rules = await savedRules(node, tools);
    const load = await startLoad(cluster);
    await load.more();
    for (const next of ["turnout", "kube-proxy"] as const) {
      await ended(proxy);
      await load.more();
      proxy = await start[next]();
      await load.more();
      const now = await savedRules(node, tools);
      report(`rules after ${next} took over (${variant})`, rules, now);
      rules = now;
    }
    await ended(proxy);
    return await load.stop();
  } finally {
    cluster.destroy();
    await rm(directory, { recursive: true });
  }
}

async function provide(cluster: Cluster, directory: string): Promise<string> {
  const api = await startClusterApi(cluster);
  await Promise.all(
    cluster.nodes.flatMap(({ pods }) =>
      pods.flatMap((pod) =>
        (["TCP", "UDP"] as const).map((transport) => pod.agent().serve({ name: pod.name, transport, port: SERVER_PORT })),
      ),
    ),
  );
  await api.apply(nodeManifests(cluster));
  for (const { endpoints, ...service } of SERVICES) {
    const places = endpoints.map((name) => ({ place: cluster.place(name) }));
    await api.apply([serviceManifest(service), ...sliceManifests(service, places, FAMILIES)]);
  }
  const kubeconfig = join(directory, "kubeconfig");
  await writeFile(kubeconfig, await api.kubeconfig());
  return kubeconfig;
}

function turnoutArguments(kubeconfig: string, clusterCIDR: string): readonly string[] {
  const source = ["--source", "kube", "--kubeconfig", kubeconfig, "--node-name", NODE, "--cluster-cidr", clusterCIDR];
  return ["run", "--backend", "iptables", ...source, "--logging-format", "json", "-v", "4"];
}

/** Read a line of Turnout's log; what is worth a warning is shown. */
function turnoutSync(line: string, atMs: number): ProxySync | undefined {
  const entry = JSON.parse(line) as { msg?: string; family?: IPFamily; ms?: number; level?: string };
  if (entry.level !== "debug") process.stdout.write(`  turnout: ${line}\n`);
  return entry.msg === "first sync done" && entry.family !== undefined
    ? { family: entry.family, elapsedMs: entry.ms ?? 0, atMs }
    : undefined;
}

async function started(
  node: NodePlace,
  env: Readonly<Record<string, string>>,
  file: string,
  args: readonly string[],
  syncOf: (line: string, atMs: number) => ProxySync | undefined,
): Promise<ChildProcess> {
  const child = node.spawn(file, args, { env, stdio: ["ignore", "inherit", "pipe"] });
  const log = followSyncs(child, syncOf);
  const heard = new Set<IPFamily>();
  while (heard.size < FAMILIES.length) heard.add((await log.next()).family);
  return child;
}

async function ended(child: ChildProcess): Promise<void> {
  const end = endOf(child);
  child.kill("SIGKILL");
  await end;
}

async function savedRules(node: NodePlace, tools: string): Promise<readonly string[]> {
  const texts = await Promise.all(
    FAMILIES.map(async (family) => savedLines(await saveText(node, tools, family)).map((line) => `${family} ${line}`)),
  );
  return texts.flat();
}

function report(title: string, before: readonly string[], after: readonly string[]): void {
  const [was, is] = [new Set(before), new Set(after)];
  const lines = [
    ...before.filter((line) => !is.has(line)).map((line) => `- ${line}`),
    ...after.filter((line) => !was.has(line)).map((line) => `+ ${line}`),
  ];
  process.stdout.write(`${title}: ${lines.length === 0 ? "the same" : ""}\n${lines.map((line) => `  ${line}\n`).join("")}`);
}

interface Running {
  readonly source: Source;
  readonly address: string;
  readonly agent: Agent;
  readonly load: number;
  readonly held: number | undefined;
}

interface TrafficLoad {
  /** Wait until each source has made some more attempts. */
  more(): Promise<void>;
  /** End it and tell; true when nothing failed. */
  stop(): Promise<boolean>;
}

async function startLoad(cluster: Cluster): Promise<TrafficLoad> {
  const flows = SOURCES.flatMap((source) => source.addresses.map((address) => ({ source, address })));
  const running = await Promise.all(
    flows.map(async ({ source, address }): Promise<Running> => {
      const agent = cluster.place(source.from).agent();
      const target = { address, port: source.port, transport: source.transport };
      const load = await agent.startLoad({ ...target, concurrency: 2, pauseMs: 10 });
      const held = source.transport === "TCP" ? await agent.hold({ ...target, everyMs: 50 }) : undefined;
      return { source, address, agent, load, held };
    }),
  );
  const attempts = (): Promise<number[]> => Promise.all(running.map(async ({ agent, load }) => (await agent.peekLoad(load)).attempts));
  return {
    more: async () => {
      const wanted = (await attempts()).map((count) => count + ATTEMPTS);
      while ((await attempts()).some((count, index) => count < (wanted[index] ?? 0))) await sleep(50);
    },
    stop: async () => {
      let isWell = true;
      for (const { source, address, agent, load, held } of running) {
        const tally = await agent.stopLoad(load);
        const connection = held === undefined ? undefined : await agent.release(held);
        isWell &&= tally.ok === tally.attempts && (connection === undefined || connection.state === "open");
        const kept = connection === undefined ? "" : `, kept connection ${connection.state} after ${connection.answers} answers`;
        const servers = Object.keys(tally.servers).toSorted().join(" ");
        process.stdout.write(
          `${source.from} → ${address} port ${source.port} ${source.transport}: ${tally.ok} of ${tally.attempts} answered by ${servers}${kept}\n`,
        );
      }
      return isWell;
    },
  };
}

const [, , variant = "nft"] = process.argv;
const binary = process.env["KUBE_PROXY"];
if (binary === undefined || (variant !== "nft" && variant !== "legacy")) throw new Error("say KUBE_PROXY=path and legacy or nft");
process.exitCode = (await takeOver(binary, variant)) ? 0 : 1;
