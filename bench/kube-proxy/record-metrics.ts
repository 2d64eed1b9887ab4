import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createCluster, startClusterApi } from "@turnout/lab";
import { metricFamilies, type MetricFamily } from "./metric-families.ts";
import { kubeProxyConfig, kubeProxySync, type KubeProxyMode } from "./process.ts";
import { SAMPLE_NODE } from "./sample-objects.ts";
import { followSyncs } from "./sync-log.ts";
import { placeTools } from "./tools.ts";

const HOME = fileURLToPath(new URL("metrics/", import.meta.url));
const MODES: readonly KubeProxyMode[] = ["iptables", "nftables"];
const METRICS = "http://127.0.0.1:10249";

/**
 * Record which metrics the real kube-proxy serves, idle, in each mode: `KUBE_PROXY=path node --conditions=@turnout/source
 * bench/kube-proxy/record-metrics.ts`. Needs root; writes bench/kube-proxy/metrics.
 */
async function record(binary: string, mode: KubeProxyMode): Promise<ReadonlyMap<string, MetricFamily>> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-record-"));
  const cluster = await createCluster({ nodes: [{ name: SAMPLE_NODE, pods: 0 }] });
  try {
    const api = await startClusterApi(cluster);
    const kubeconfig = join(directory, "kubeconfig");
    await writeFile(kubeconfig, await api.kubeconfig());
    const config = join(directory, "config.json");
    await writeFile(config, kubeProxyConfig({ mode, nodeName: SAMPLE_NODE, kubeconfig }));
    const node = cluster.node(SAMPLE_NODE);
    const env = { PATH: `${await placeTools(directory, "nft")}:${process.env["PATH"] ?? ""}` };
    const child = node.spawn(binary, ["--config", config], { env, stdio: ["ignore", "inherit", "pipe"] });
    const log = followSyncs(child, kubeProxySync);
    for (const _ of ["IPv4", "IPv6"]) await log.next();
    const get = async (url: string): Promise<string> => {
      let text = "";
      for await (const chunk of node.spawn("curl", ["-s", url], { stdio: ["ignore", "pipe", "inherit"] }).stdout ?? [])
        text += String(chunk);
      return text;
    };
    // Counters of answers are there from the first answer on.
    for (const url of [`${METRICS}/healthz`, "http://127.0.0.1:10256/healthz", "http://127.0.0.1:10256/livez"]) await get(url);
    const scraped = [await get(`${METRICS}/metrics`), await get(`${METRICS}/metrics/slis`)].map(metricFamilies);
    child.kill();
    return new Map([...(scraped[1] ?? []), ...(scraped[0] ?? [])]);
  } finally {
    cluster.destroy();
    await rm(directory, { recursive: true });
  }
}

const binary = process.env["KUBE_PROXY"];
if (binary === undefined) throw new Error("say KUBE_PROXY=path of a kube-proxy");
for (const mode of MODES) {
  const lines = [...(await record(binary, mode))]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, family]) => `${JSON.stringify(name)}: ${JSON.stringify(family)}`);
  await writeFile(join(HOME, `${mode}.json`), `{\n${lines.join(",\n")}\n}\n`);
}
