import type { ChildProcess } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@turnout/core";
import type { NodePlace } from "@turnout/lab";
import { kubeProxyConfig, kubeProxySync } from "./kube-proxy/process.ts";
import type { KubeProxyMode } from "./kube-proxy/process.ts";
import { followSyncs } from "./kube-proxy/sync-log.ts";
import type { ProxySync, SyncLog } from "./kube-proxy/sync-log.ts";
import { TURNOUT } from "./role-process.ts";

/** The variants of the iptables tools. */
export type Variant = "legacy" | "nft";

/** A proxy as a user starts it. */
export type ProxyKind =
  | { readonly program: "kube-proxy"; readonly mode: KubeProxyMode; readonly variant: Variant }
  | { readonly program: "turnout"; readonly flags: readonly string[] };

/** What it takes to start one on a node. */
export interface ProxyPlace {
  readonly node: Pick<NodePlace, "name" | "spawn">;
  readonly kubeconfig: string;
  /** Undefined: the fields say it, or nothing does. */
  readonly clusterCIDR?: string;
  /** For its files. */
  readonly folder: string;
  /** Path of the real one; undefined: there is none. */
  readonly kubeProxy: string | undefined;
  /** Fields that kube-proxy's configuration has besides. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Rows of IPv4 that Turnout has to have in force each time; with it, warnings and errors of Turnout's are failures: the run was disturbed. */
  readonly rows?: number;
}

/** What Turnout says when nothing that a former proxy left gets new connections any more. */
const FORMER_IS_GONE = ["the rules of a former proxy were removed", "connections through IPVS go on"];
/** For Turnout to remove what a former proxy left. */
const FORMER_GONE_MS = 120_000;

/** `turnout run` with flags. */
export const turnout = (...flags: readonly string[]): ProxyKind => ({ program: "turnout", flags });
const iptables = (variant: Variant): ProxyKind => turnout("--backend", "iptables", "--backend-option", `variant=${variant}`);

/** Names of {@link HOST_PROXIES}. */
export type HostProxy =
  | `kube-proxy ${"nftables" | "iptables (nft)" | "iptables (legacy)"}`
  | 'turnout, mode ""'
  | `turnout ${"nft" | "iptables (nft)" | "iptables (legacy)" | "ebpf"}`;

/** Those that this machine's own kernel can play, by the names that the table has. */
export const HOST_PROXIES: Readonly<Record<HostProxy, ProxyKind>> = {
  "kube-proxy nftables": { program: "kube-proxy", mode: "nftables", variant: "nft" },
  "kube-proxy iptables (nft)": { program: "kube-proxy", mode: "iptables", variant: "nft" },
  "kube-proxy iptables (legacy)": { program: "kube-proxy", mode: "iptables", variant: "legacy" },
  'turnout, mode ""': turnout(),
  "turnout nft": turnout("--backend", "nft"),
  "turnout iptables (nft)": iptables("nft"),
  "turnout iptables (legacy)": iptables("legacy"),
  "turnout ebpf": turnout("--backend", "ebpf"),
};

/** Those that need IPVS, and those that its guest can play beside: that kernel has no nf_tables. */
export const VM_PROXIES: Readonly<Record<string, ProxyKind>> = {
  "kube-proxy ipvs": { program: "kube-proxy", mode: "ipvs", variant: "legacy" },
  "kube-proxy iptables (legacy)": { program: "kube-proxy", mode: "iptables", variant: "legacy" },
  'turnout, mode ""': turnout(),
  "turnout ipvs": turnout("--backend", "ipvs", "--backend-option", "variant=legacy"),
  "turnout iptables (legacy)": iptables("legacy"),
};

/** A proxy whose rules are in force. */
export interface RunningProxy {
  readonly child: ChildProcess;
  /** Its first syncs, both families. */
  readonly first: readonly ProxySync[];
  /** Its syncs after those. */
  readonly log: SyncLog;
  /** Wait until it has said of both families that the rules of a former proxy are removed, or only serve what is open; Turnout only. */
  formerIsGone(): Promise<void>;
}

/** Start a proxy and wait until both families are in force. @throws {Error} when it ends before. */
export async function startKind(kind: ProxyKind, place: ProxyPlace): Promise<RunningProxy> {
  const { node, kubeconfig, clusterCIDR, folder, kubeProxy, fields, rows } = place;
  if (kind.program === "turnout") {
    const source = [
      "--source",
      "kube",
      "--kubeconfig",
      kubeconfig,
      "--node-name",
      node.name,
      ...(clusterCIDR === undefined ? [] : ["--cluster-cidr", clusterCIDR]),
    ];
    const args = ["run", ...kind.flags, ...source, "--logging-format", "json"];
    const left = new Set<IPFamily>(["IPv4", "IPv6"]);
    const running = await active(node.spawn(TURNOUT, args, { stdio: ["ignore", "inherit", "pipe"] }), turnoutSync(left, rows));
    const formerIsGone = async (): Promise<void> => {
      for (const untilMs = performance.now() + FORMER_GONE_MS; left.size > 0; await sleep(50))
        if (performance.now() > untilMs) throw new Error("Turnout doesn't say that the rules of the former proxy are removed");
    };
    return { ...running, formerIsGone };
  }
  if (kubeProxy === undefined) throw new Error("say KUBE_PROXY=path of a kube-proxy");
  const { mode, variant } = kind;
  const own = join(folder, `${mode}-${variant}-${String(performance.now())}`);
  await mkdir(own);
  const tools = await placeTools(own, variant);
  const config = join(own, "config.json");
  await writeFile(config, kubeProxyConfig({ mode, nodeName: node.name, kubeconfig, fields: { clusterCIDR, ...fields } }));
  const env = { PATH: `${tools}:${process.env["PATH"] ?? ""}` };
  const running = await active(node.spawn(kubeProxy, ["--config", config], { env, stdio: ["ignore", "inherit", "pipe"] }), reportedSync);
  return { ...running, formerIsGone: () => Promise.reject(new Error("kube-proxy says nothing of former proxies")) };
}

type SyncOf = (line: string, atMs: number) => ProxySync | undefined;

async function active(child: ChildProcess, syncOf: SyncOf): Promise<Omit<RunningProxy, "formerIsGone">> {
  const log = followSyncs(child, syncOf);
  const first: ProxySync[] = [];
  while (new Set(first.map(({ family }) => family)).size < 2) first.push(await log.next());
  return { child, first, log };
}

/** Read lines of kube-proxy's log, and show its errors: it says "complete" of syncs of which a part failed, too. */
const reportedSync: SyncOf = (line, atMs) => {
  if (process.env["TURNOUT_MOVING_LOG"] !== undefined && (line.includes('"err"') || !line.startsWith("{")))
    process.stderr.write(`${line}\n`);
  return kubeProxySync(line, atMs);
};

/** What a process that isn't in the host's own network namespace warns of, as every one here. */
const HOST_SETTINGS = "host settings are left as they are";

/**
 * Read lines of Turnout's log: syncs; and take those from `left` whose former rules are removed. With `rows` other rows of IPv4, warnings and errors are
 * failures.
 */
export const turnoutSync =
  (left: Set<IPFamily>, rows?: number): SyncOf =>
  (line, atMs) => {
    if (process.env["TURNOUT_MOVING_LOG"] !== undefined) process.stderr.write(`${line}\n`);
    const entry = JSON.parse(line) as { msg?: string; family?: IPFamily; ms?: number; rows?: number; level?: string };
    const { msg = "", family, ms = 0 } = entry;
    const isWarning = entry.level !== "info" && entry.level !== "debug" && msg !== HOST_SETTINGS;
    if (rows !== undefined && isWarning) throw new Error(`the run was disturbed: turnout said: ${line}`);
    if (family === undefined) return undefined;
    if (FORMER_IS_GONE.some((words) => msg.startsWith(words))) left.delete(family);
    if (msg !== "first sync done" && msg !== "synced") return undefined;
    if (rows !== undefined && family === "IPv4" && entry.rows !== rows)
      throw new Error(`${entry.rows ?? 0} rows are in force instead of ${rows}`);
    return { family, elapsedMs: ms, atMs };
  };

const TOOLS = ["iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"];

/** Make a directory in which the plain names of the tools are those of one variant; resolves to its path, to be first on PATH. */
async function placeTools(directory: string, variant: Variant): Promise<string> {
  const path = join(directory, `tools-${variant}`);
  await mkdir(path);
  for (const tool of TOOLS) await symlink(`/usr/sbin/xtables-${variant}-multi`, join(path, tool));
  return path;
}
