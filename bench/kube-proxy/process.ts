import { execFileSync } from "node:child_process";
import type { ProxySync } from "./sync-log.ts";

/** The modes of the real kube-proxy that are run here. */
export type KubeProxyMode = "iptables" | "ipvs" | "nftables";

/** How a real kube-proxy is run. */
export interface KubeProxyOptions {
  readonly mode: KubeProxyMode;
  readonly nodeName: string;
  /** Path of the kubeconfig of an API server emulator. */
  readonly kubeconfig: string;
  /** Fields of KubeProxyConfiguration that this run has besides. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** Write the KubeProxyConfiguration of a run, as JSON (which is YAML). Pure. */
export function kubeProxyConfig({ mode, nodeName, kubeconfig, fields }: KubeProxyOptions): string {
  const config = {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode,
    hostnameOverride: nodeName,
    // The emulator speaks JSON only, and 5 requests a second would be the limit.
    clientConnection: { kubeconfig, contentType: "application/json", acceptContentTypes: "application/json", qps: 100, burst: 100 },
    // In ipvs mode kube-proxy tells of its syncs two levels deeper.
    logging: { format: "json", verbosity: mode === "ipvs" ? 4 : 2 },
    // The size of the table is the whole machine's, not the namespace's.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    oomScoreAdj: 0,
    ...fields,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

/** Ask a kube-proxy for its version. @throws {Error} when it can't be started. */
export function kubeProxyVersion(binary: string): string {
  return execFileSync(binary, ["--version"], { encoding: "utf8" }).trim().replace("Kubernetes ", "");
}

/** Read a line of kube-proxy's log: a sync that ended well, or nothing of the kind. Pure. @throws {Error} on one that failed. */
export function kubeProxySync(line: string, atMs: number): ProxySync | undefined {
  // Some lines are not JSON: what Go and its libraries print by themselves.
  if (!line.startsWith("{")) return undefined;
  const { msg, ipFamily, elapsed } = JSON.parse(line) as { msg?: string; ipFamily?: string; elapsed?: string };
  if (msg === "Sync failed") throw new Error(`kube-proxy failed to sync ${ipFamily ?? ""}`);
  // In ipvs mode the line begins with a small letter.
  if (msg?.toLowerCase() !== "syncproxyrules complete") return undefined;
  if (ipFamily !== "IPv4" && ipFamily !== "IPv6") throw new Error(`kube-proxy named no family: ${line}`);
  return { family: ipFamily, elapsedMs: goDurationMs(elapsed ?? ""), atMs };
}

const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, µs: 1e-3, ns: 1e-6 };

/** Read a Go duration such as `1m2.5s` as ms. Pure. @throws {RangeError} when it is none. */
export function goDurationMs(text: string): number {
  const parts = [...text.matchAll(/([\d.]+)(h|ms|m|s|µs|ns)/g)];
  if (parts.length === 0) throw new RangeError(`"${text}" is no Go duration`);
  return parts.reduce((sum, [, value, unit]) => sum + Number(value) * (UNITS_MS[unit ?? ""] ?? 0), 0);
}
