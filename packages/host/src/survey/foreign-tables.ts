import { ProxyError } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";
import { readingListing } from "../nft/listing.ts";
import { readIptablesTable } from "./rules/iptables-rules.ts";
import { readNftTable, textsByHandle } from "./rules/nft-rules.ts";
import type { ForeignTable } from "./rules/rule.ts";

/** Reads a file of /proc; undefined where it isn't there. */
export type ReadFile = (path: string) => Promise<string | undefined>;

/** What was read of other programs' rules. */
export interface ForeignTables {
  readonly tables: readonly ForeignTable[];
  /** Tables of nftables that are service proxies': `ip kube-proxy`. */
  readonly proxyTables: readonly string[];
  /** What could not be read, and why. */
  readonly unseen: readonly string[];
}

/** Tables of service proxies: what they do with a packet is told otherwise, and they are large. */
const PROXY_TABLE = /^(turnout|kube-proxy)/;
/** Chains of service proxies. kube-router's chains of network policies begin alike. */
const PROXY_CHAIN = /^KUBE-(?!ROUTER|NWPLCY|POD-FW)/;
const IPTABLES_TABLES: readonly string[] = ["raw", "mangle", "nat", "filter", "security"];
const NFT_FAMILIES: Readonly<Record<IPFamily, readonly string[]>> = { IPv4: ["ip", "inet", "netdev"], IPv6: ["ip6", "inet", "netdev"] };
const LIST_TIMEOUT_MS = 3_000;

/** Tell whether a chain is a service proxy's. Pure. */
export function isProxyChain(name: string): boolean {
  return PROXY_CHAIN.test(name);
}

/** What is read besides. */
interface Wanted {
  /** Which addresses kube-proxy's chains serve. */
  readonly readsServices: boolean;
}

interface Tools {
  readonly exec: Exec;
  readonly read: ReadFile;
}

/**
 * Read the rules of other programs that a packet of a family meets: nftables, and iptables in both variants. Reads only.
 *
 * Edges: tables of service proxies are left out. iptables' legacy tables are read only where the kernel has them, since the tool would make them.
 */
export async function readForeignTables(
  { exec, read }: Tools,
  family: IPFamily,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<ForeignTables> {
  const unseen: string[] = [];
  const guarded = async (what: string, reading: Promise<Omit<ForeignTables, "unseen">>): Promise<Omit<ForeignTables, "unseen">> => {
    try {
      return await reading;
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      unseen.push(`${what}: ${error.message}`);
      return { tables: [], proxyTables: [] };
    }
  };
  const found = await Promise.all([
    guarded("rules of nftables and iptables", readNft(exec, family, wanted, signal)),
    guarded("rules of iptables (legacy)", readLegacy({ exec, read }, family, wanted, signal)),
  ]);
  return { tables: found.flatMap(({ tables }) => tables), proxyTables: found.flatMap(({ proxyTables }) => proxyTables), unseen };
}

/** Run a program that lists. @throws {ProxyError} `tool_failed` when it fails. */
async function listing(exec: Exec, file: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const { code, stdout, stderr } = await exec.run(file, args, { signal, timeoutMs: LIST_TIMEOUT_MS });
  if (code === 0) return stdout;
  const [first = ""] = stderr.trim().split("\n");
  throw new ProxyError("tool_failed", `${file} ${args.join(" ")} failed`, { object: first.slice(0, 200) });
}

interface ListedBase {
  readonly family: string;
  readonly table: string;
  readonly isIptables: boolean;
}

async function readNft(exec: Exec, family: IPFamily, wanted: Wanted, signal: AbortSignal): Promise<Omit<ForeignTables, "unseen">> {
  const stdout = await listing(exec, "nft", ["-j", "list", "chains"], signal);
  const all = readingListing(() => basesOf(stdout)).filter((base) => NFT_FAMILIES[family].includes(base.family));
  const bases = all.filter(({ table }) => !PROXY_TABLE.test(table));
  const own = bases.filter(({ isIptables }) => !isIptables);
  const read = own.map(async (base) => {
    const [text, shown] = await Promise.all([
      listing(exec, "nft", ["-j", "list", "table", base.family, base.table], signal),
      // As people know it, without what is in sets.
      listing(exec, "nft", ["-a", "-t", "list", "table", base.family, base.table], signal),
    ]);
    return [readingListing(() => readNftTable(base.family, base.table, JSON.parse(text), textsByHandle(shown)))];
  });
  const iptables = bases.filter(({ isIptables }) => isIptables).map(({ table }) => table);
  const tool = family === "IPv4" ? "iptables" : "ip6tables";
  const tables = await Promise.all([...read, ...iptables.map((table) => readIptables(exec, tool, `${tool}-nft`, table, wanted, signal))]);
  const proxyTables = all.filter(({ table }) => PROXY_TABLE.test(table)).map((base) => `${base.family} ${base.table}`);
  return { tables: tables.flat(), proxyTables };
}

/** The tables with base chains. */
function basesOf(text: string): readonly ListedBase[] {
  const entries =
    (JSON.parse(text) as { readonly nftables?: readonly { readonly chain?: Readonly<Record<string, unknown>> }[] }).nftables ?? [];
  const found = new Map<string, ListedBase>();
  for (const { chain } of entries) {
    if (chain?.["hook"] === undefined) continue;
    const [family, table, name] = [String(chain["family"]), String(chain["table"]), String(chain["name"])];
    const isIptables = (family === "ip" || family === "ip6") && IPTABLES_TABLES.includes(table) && name === name.toUpperCase();
    found.set(`${family} ${table}`, { family, table, isIptables });
  }
  return [...found.values()];
}

async function readLegacy(
  { exec, read: readText }: Tools,
  family: IPFamily,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<Omit<ForeignTables, "unseen">> {
  const names = await readText(family === "IPv4" ? "/proc/net/ip_tables_names" : "/proc/net/ip6_tables_names");
  const tables = (names ?? "").split("\n").filter((table) => IPTABLES_TABLES.includes(table));
  const tool = family === "IPv4" ? "iptables-legacy" : "ip6tables-legacy";
  const read = (await Promise.all(tables.map((table) => readIptables(exec, tool, tool, table, wanted, signal)))).flat();
  return { tables: read, proxyTables: [] };
}

/** Of the table nat only the chains that packets come to: a service proxy's are a hundred thousand. */
async function readIptables(
  exec: Exec,
  tool: Exclude<ForeignTable["tool"], "nft">,
  program: string,
  table: string,
  { readsServices }: Wanted,
  signal: AbortSignal,
): Promise<readonly ForeignTable[]> {
  const list = (...chain: readonly string[]): Promise<string> => listing(exec, program, ["-w", "2", "-t", table, "-S", ...chain], signal);
  if (table !== "nat") return [readIptablesTable(tool, table, await list())];
  const texts = new Map<string, string>();
  for (let open: readonly string[] = ["PREROUTING", "OUTPUT", "POSTROUTING"]; open.length > 0;) {
    for (const chain of open) texts.set(chain, await list(chain));
    const targets = [...texts.values()].flatMap((text) => [...text.matchAll(/ -[jg] (\S+)/g)].map(([, target = ""]) => target));
    open = [...new Set(targets)].filter(
      (target) =>
        !texts.has(target) && (!isProxyChain(target) || (readsServices && target === "KUBE-SERVICES")) && !/^[A-Z]+$/.test(target),
    );
  }
  return [readIptablesTable(tool, table, [...texts.values()].join("\n"))];
}
