import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { FAMILIES } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { createLaboratory } from "@turnout/lab";
import type { NodePlace, Place } from "@turnout/lab";
import { startKind } from "../proxies.ts";
import type { KubeProxyMode } from "./process.ts";
import { metricFamilies } from "./metric-families.ts";
import type { Variant } from "../proxies.ts";

const home = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const HOME = home("../../packages/backend-iptables/test/kube-proxy/");
const NFT_HOME = home("../../packages/backend-nft/test/kube-proxy/");
const METRICS_HOME = home("metrics/");
/** The node that the objects are seen from. */
const NODE = "node1";
const [HEALTH, METRICS] = ["http://127.0.0.1:10256", "http://127.0.0.1:10249"];

/** An entry of `cases.json`: a file of objects, and fields of KubeProxyConfiguration. */
interface SampleCase {
  readonly name: string;
  readonly set: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** What a kube-proxy is recorded with. */
interface Recording extends Partial<Pick<SampleCase, "set" | "fields">> {
  readonly mode: KubeProxyMode;
  readonly variant: Variant;
}

/**
 * Record what the real kube-proxy's iptables and nftables modes write for the cases and objects of packages/backend-iptables/test/kube-proxy, and which
 * metrics it serves, idle: `KUBE_PROXY=path node --conditions=@turnout/source bench/kube-proxy/record.ts`. Needs root, nft, curl and both variants of the
 * iptables tools; writes test/kube-proxy of packages/backend-iptables and packages/backend-nft, and bench/kube-proxy/metrics.
 */
async function record(binary: string): Promise<void> {
  for (const { name, set, fields } of JSON.parse(await readFile(join(HOME, "cases.json"), "utf8")) as readonly SampleCase[]) {
    const saved = async (variant: Variant): Promise<Readonly<Record<IPFamily, string>>> =>
      await withKubeProxy(binary, { set, fields, mode: "iptables", variant }, async (node) => ({
        IPv4: await saveText(node, variant, "IPv4"),
        IPv6: await saveText(node, variant, "IPv6"),
      }));
    const [legacy, nft] = [await saved("legacy"), await saved("nft")];
    for (const family of FAMILIES) {
      // Services come in another order each time; apart from that one text stands for both variants.
      if (savedLines(legacy[family]).join() !== savedLines(nft[family]).join())
        throw new Error(`${name}: the two variants save different rules`);
      await writeFile(join(HOME, `${name}.${family}.save`), nft[family]);
    }
    process.stdout.write(`${name}\n`);
  }
  const tables = await withKubeProxy(binary, { set: "few", mode: "nftables", variant: "nft" }, (node) =>
    Promise.all(["ip", "ip6"].map((family) => node.run("nft", ["-s", "list", "table", family, "kube-proxy"]))),
  );
  // As `nft -f` takes them.
  await writeFile(join(NFT_HOME, "few.nft"), tables.map(({ stdout }) => stdout).join(""));
  for (const mode of ["iptables", "nftables"] as const) {
    const families = await withKubeProxy(binary, { mode, variant: "nft" }, scraped);
    const lines = [...families]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, one]) => `"${name}": ${JSON.stringify(one)}`);
    await writeFile(join(METRICS_HOME, `${mode}.json`), `{\n${lines.join(",\n")}\n}\n`);
  }
}

async function scraped(node: NodePlace): Promise<ReturnType<typeof metricFamilies>> {
  const get = async (url: string): Promise<string> => (await node.run("curl", ["-s", url])).stdout;
  // Counters of answers are there from the first answer on.
  for (const url of [`${METRICS}/healthz`, `${HEALTH}/healthz`, `${HEALTH}/livez`]) await get(url);
  const [all, slis] = [metricFamilies(await get(`${METRICS}/metrics`)), metricFamilies(await get(`${METRICS}/metrics/slis`))];
  return new Map([...slis, ...all]);
}

/** Run a kube-proxy on a node of its own until both families are in force, and read what it has. */
async function withKubeProxy<T>(
  binary: string,
  { set, fields, mode, variant }: Recording,
  read: (node: NodePlace) => Promise<T>,
): Promise<T> {
  const { cluster, api, kubeconfig, folder, destroy } = await createLaboratory({ nodes: [{ name: NODE, pods: 0 }] });
  try {
    if (set !== undefined) {
      const { items } = JSON.parse(await readFile(join(HOME, `${set}.objects.json`), "utf8")) as { readonly items: readonly unknown[] };
      await api.apply(items);
    }
    const node = cluster.node(NODE);
    const kind = { program: "kube-proxy", mode, variant } as const;
    await startKind(kind, { node, kubeconfig, folder, kubeProxy: binary, ...(fields === undefined ? {} : { fields }) });
    return await read(node);
  } finally {
    await destroy();
  }
}

/** What the tool of a variant saves in a place: all tables, without dates, counters zero. */
async function saveText(place: Place, variant: Variant, family: IPFamily): Promise<string> {
  const { stdout } = await place.run(`${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-save`, []);
  const lines = stdout.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return `${lines.map((line) => line.replace(/\[\d+:\d+\]$/, "[0:0]")).join("\n")}\n`;
}

/** The chains and rules of a saved text, each with its table: what is left when order does not count. Pure. */
function savedLines(text: string): readonly string[] {
  let table = "";
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("*")) table = line.slice(1);
    else if (line.startsWith(":") || line.startsWith("-A ")) lines.push(`${table} ${line}`);
  }
  return lines.toSorted();
}

const binary = process.env["KUBE_PROXY"];
if (binary === undefined) throw new Error("say KUBE_PROXY=path of a kube-proxy");
await record(binary);
