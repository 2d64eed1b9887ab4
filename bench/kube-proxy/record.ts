import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IPFamily } from "@turnout/core";
import { createCluster, startClusterApi } from "@turnout/lab";
import type { NodePlace } from "@turnout/lab";
import { kubeProxyConfig, kubeProxySync } from "./process.ts";
import type { KubeProxyMode } from "./process.ts";
import { SAMPLE_NODE } from "./sample-objects.ts";
import { SAMPLE_CASES, SAMPLE_SETS } from "./samples.ts";
import type { SampleCase } from "./samples.ts";
import { savedLines, saveText } from "./save.ts";
import { followSyncs } from "./sync-log.ts";
import { placeTools } from "./tools.ts";
import type { Variant } from "./tools.ts";

const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
const HOME = fileURLToPath(new URL("../../packages/backend-iptables/test/kube-proxy/", import.meta.url));
const NFT_HOME = fileURLToPath(new URL("../../packages/backend-nft/test/kube-proxy/", import.meta.url));

/**
 * Record what the real kube-proxy's iptables and nftables modes write: `KUBE_PROXY=path node --conditions=@turnout/source bench/kube-proxy/record.ts`.
 * Needs root, nft and both variants of the iptables tools; writes test/kube-proxy of packages/backend-iptables and packages/backend-nft.
 */
async function record(binary: string): Promise<void> {
  await mkdir(HOME, { recursive: true });
  for (const [name, items] of Object.entries(SAMPLE_SETS)) {
    const lines = items.map((item) => JSON.stringify(item)).join(",\n");
    await writeFile(join(HOME, `${name}.objects.json`), `{"apiVersion":"v1","kind":"List","items":[\n${lines}\n]}\n`);
  }
  const cases = SAMPLE_CASES.map((one) => JSON.stringify(one)).join(",\n");
  await writeFile(join(HOME, "cases.json"), `[\n${cases}\n]\n`);
  for (const one of SAMPLE_CASES) {
    const [legacy, nft] = [await recordCase(binary, one, "legacy"), await recordCase(binary, one, "nft")];
    for (const family of FAMILIES) {
      // Services come in another order each time; apart from that one text stands for both variants.
      if (savedLines(legacy[family]).join() !== savedLines(nft[family]).join())
        throw new Error(`${one.name}: the two variants save different rules`);
      await writeFile(join(HOME, `${one.name}.${family}.save`), nft[family]);
    }
    process.stdout.write(`${one.name}\n`);
  }
  await recordTables(binary);
}

/** The tables of its nftables mode, as `nft -f` takes them, for a handful of Services. */
async function recordTables(binary: string): Promise<void> {
  await mkdir(NFT_HOME, { recursive: true });
  const text = await comparedWith(binary, { set: "few", fields: {}, mode: "nftables", variant: "nft" }, async (node) => {
    const tables = await Promise.all(["ip", "ip6"].map((family) => node.run("nft", ["-s", "list", "table", family, "kube-proxy"])));
    return tables.map(({ stdout }) => stdout).join("");
  });
  await writeFile(join(NFT_HOME, "few.nft"), text);
}

async function recordCase(binary: string, { set, fields }: SampleCase, variant: Variant): Promise<Readonly<Record<IPFamily, string>>> {
  return await comparedWith(binary, { set, fields, mode: "iptables", variant }, async (node, tools) => ({
    IPv4: await saveText(node, tools, "IPv4"),
    IPv6: await saveText(node, tools, "IPv6"),
  }));
}

/** What a kube-proxy is recorded with. */
interface Recording extends Pick<SampleCase, "set" | "fields"> {
  readonly mode: KubeProxyMode;
  readonly variant: Variant;
}

/** Run a kube-proxy on a node of its own until both families are in force, and read what it wrote. */
async function comparedWith<T>(
  binary: string,
  { set, fields, mode, variant }: Recording,
  read: (node: NodePlace, tools: string) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-record-"));
  const cluster = await createCluster({ nodes: [{ name: SAMPLE_NODE, pods: 0 }] });
  try {
    const api = await startClusterApi(cluster);
    await api.apply(SAMPLE_SETS[set] ?? []);
    const kubeconfig = join(directory, "kubeconfig");
    await writeFile(kubeconfig, await api.kubeconfig());
    const config = join(directory, "config.json");
    await writeFile(config, kubeProxyConfig({ mode, nodeName: SAMPLE_NODE, kubeconfig, fields }));
    const node = cluster.node(SAMPLE_NODE);
    const tools = await placeTools(directory, variant);
    const env = { PATH: `${tools}:${process.env["PATH"] ?? ""}` };
    const child = node.spawn(binary, ["--config", config], { env, stdio: ["ignore", "inherit", "pipe"] });
    const log = followSyncs(child, kubeProxySync);
    const heard = new Set<string>();
    while (heard.size < 2) heard.add((await log.next()).family);
    return await read(node, tools);
  } finally {
    cluster.destroy();
    await rm(directory, { recursive: true });
  }
}

const binary = process.env["KUBE_PROXY"];
if (binary === undefined) throw new Error("say KUBE_PROXY=path of a kube-proxy");
await record(binary);
