import { ProxyError } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";
import { IPTABLES_TABLES } from "@turnout/host";
import type { Netlink, NftTableName } from "@turnout/host";
import { listChains, mayBeChain, readIptablesTable } from "@turnout/host/iptables";
import { readNftTable, readShownTable, readingListing } from "@turnout/host/nft";
import type { ExternalTable } from "@turnout/host/rules";

/** Reads a file of /proc; undefined where it isn't there. */
export type ReadFile = (path: string) => Promise<string | undefined>;

/** What was read of other programs' rules. */
export interface ExternalTables {
  readonly tables: readonly ExternalTable[];
  /** Tables of nftables that are service proxies': `ip kube-proxy`. */
  readonly proxyTables: readonly string[];
  /** What could not be read, and why. */
  readonly unseen: readonly Unseen[];
}

/** What a look at the host could not see. */
export interface Unseen {
  readonly what: string;
  readonly because: string;
}

/** Tables of service proxies: what they do with a packet is told otherwise, and they are large. */
const PROXY_TABLE = /^(turnout|kube-proxy)/;
/** Chains of service proxies. kube-router's chains of network policies begin alike. */
const PROXY_CHAIN = /^KUBE-(?!ROUTER|NWPLCY|POD-FW)/;
const NFT_FAMILIES: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["ip", "inet", "netdev", "bridge"],
  IPv6: ["ip6", "inet", "netdev", "bridge"],
};
/** What the nf_tables variant says of a table that nft has made, or in which nft has chains and rules; it calls that a success. */
const OF_NFT = /^# Table `\S+' .*incompatible/m;
/** Of a busy host. What is not read in time is told, and the answer is worth less. */
const LIST_TIMEOUT_MS = 10_000;

/** Tell whether a chain is a service proxy's. Pure. */
export function isProxyChain(name: string): boolean {
  return PROXY_CHAIN.test(name);
}

/** What rules of other programs are read with. */
export interface ExternalTools {
  readonly exec: Exec;
  readonly read: ReadFile;
  readonly netlink: Pick<Netlink, "nftTables">;
}

/**
 * Read the rules of other programs that a packet of a family meets: nftables, and iptables in both variants. Reads only.
 *
 * Edges: tables of service proxies are left out, and of nat their chains: see {@link withServices}. iptables' legacy tables are read only where the
 * kernel has them, since the tool would make them.
 */
export async function readExternalTables(
  tools: ExternalTools,
  family: IPFamily,
  signal: AbortSignal,
  among: readonly string[] = NFT_FAMILIES[family],
): Promise<ExternalTables> {
  const found = await Promise.all([
    guarded("nftables, iptables", readNft(tools, family, among, signal)),
    guarded("iptables-legacy", readLegacy(tools, family, signal)),
  ]);
  return together(found);
}

/** {@link readExternalTables} of both families, each table once. */
export async function readAllExternalTables(tools: ExternalTools, signal: AbortSignal): Promise<ExternalTables> {
  return together([await readExternalTables(tools, "IPv4", signal), await readExternalTables(tools, "IPv6", signal, ["ip6"])]);
}

/** A chain of kube-proxy's in nat, with a rule for each address that it serves. */
export const KUBE_SERVICES = "KUBE-SERVICES";
/** Its chain that rewrites sources. */
export const KUBE_POSTROUTING = "KUBE-POSTROUTING";

/** Read besides which addresses kube-proxy's chains serve, where packets come to them. Reads only. */
export async function withServices(exec: Exec, found: ExternalTables, signal: AbortSignal): Promise<ExternalTables> {
  const call = ` -j ${KUBE_SERVICES}`;
  const isCalled = ({ chains }: ExternalTable): boolean =>
    [...chains.values()].some(({ rules }) => rules.some(({ deletion }) => deletion.endsWith(call)));
  const read = found.tables.map(async (table): Promise<ExternalTables> => {
    const { tool, place, name } = table;
    if (tool === "nft" || place !== "nat" || !isCalled(table)) return { ...NOTHING, tables: [table] };
    const text = listing(exec, programOf(tool), listArguments(place, KUBE_SERVICES), signal);
    const whole = text.then((listed) => new Map([...table.chains, ...readIptablesTable(tool, place, listed).chains]));
    const services = await guarded(
      `${KUBE_SERVICES} of ${name}`,
      whole.then((chains) => ({ ...NOTHING, tables: [{ ...table, chains }] })),
    );
    return services.tables.length > 0 ? services : { ...services, tables: [table] };
  });
  return together([{ ...found, tables: [] }, ...(await Promise.all(read))]);
}

type IptablesName = Exclude<ExternalTable["tool"], "nft">;

function isLegacy(tool: IptablesName): boolean {
  return tool.endsWith("-legacy");
}

function programOf(tool: IptablesName): string {
  return isLegacy(tool) ? tool : `${tool}-nft`;
}

function listArguments(table: string, ...chain: readonly string[]): readonly string[] {
  return ["-w", "2", "-t", table, "-S", ...chain];
}

const NOTHING: ExternalTables = { tables: [], proxyTables: [], unseen: [] };

/** What can't be read is named, and the rest counts. */
async function guarded(what: string, reading: Promise<ExternalTables>): Promise<ExternalTables> {
  try {
    return await reading;
  } catch (error) {
    if (!ProxyError.is(error)) throw error;
    return { ...NOTHING, unseen: [{ what, because: error.message }] };
  }
}

function together(found: readonly ExternalTables[]): ExternalTables {
  return {
    tables: found.flatMap(({ tables }) => tables),
    proxyTables: found.flatMap(({ proxyTables }) => proxyTables),
    unseen: found.flatMap(({ unseen }) => unseen),
  };
}

/** Run a program that lists. @throws {ProxyError} `tool_failed` when it fails. */
async function listing(exec: Exec, file: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const { code, stdout, stderr } = await exec.run(file, args, { signal, timeoutMs: LIST_TIMEOUT_MS });
  if (code === 0) return stdout;
  const [first = ""] = stderr.trim().split("\n");
  throw new ProxyError("tool_failed", `${file} ${args.join(" ")} failed`, { object: first.slice(0, 200) });
}

/** Which tables there are is asked over netlink: for any question nft reads all that the kernel has, the elements of a proxy's sets too. */
async function readNft(
  { exec, netlink }: ExternalTools,
  family: IPFamily,
  among: readonly string[],
  signal: AbortSignal,
): Promise<ExternalTables> {
  const all = (await netlink.nftTables()).filter((one) => among.includes(one.family));
  const tool = family === "IPv4" ? "iptables" : "ip6tables";
  const read = all
    .filter(({ table }) => !PROXY_TABLE.test(table))
    .map((one) => {
      const reading = readListed(exec, one, tool, signal);
      const name = one.isIptables ? `${tool} table ${one.table}` : `table ${one.family} ${one.table}`;
      return guarded(
        name,
        reading.then((table) => ({ ...NOTHING, tables: [table] })),
      );
    });
  const proxyTables = all.filter(({ table }) => PROXY_TABLE.test(table)).map((one) => `${one.family} ${one.table}`);
  return together([{ ...NOTHING, proxyTables }, ...(await Promise.all(read))]);
}

/** A proxy's `mangle` has no built-in chain, and iptables lists it in a hundredth of the time that nft takes beside the chains of a proxy. */
async function readListed(exec: Exec, one: NftTableName, tool: "iptables" | "ip6tables", signal: AbortSignal): Promise<ExternalTable> {
  const mayBeIptables = (one.family === "ip" || one.family === "ip6") && IPTABLES_TABLES.has(one.table);
  const reading: IptablesReading = { exec, tool, table: one.table, signal };
  if (one.isIptables && one.table === "nat") return (await readMet(reading)) ?? (await readTable(exec, one, signal));
  return (
    (mayBeIptables ? ((await readCounted(reading, one)) ?? (await readWhole(reading))) : undefined) ?? (await readTable(exec, one, signal))
  );
}

async function readTable(exec: Exec, { family, table }: NftTableName, signal: AbortSignal): Promise<ExternalTable> {
  const [text, shown] = await Promise.all([
    listing(exec, "nft", ["-j", "list", "table", family, table], signal),
    // As people know it, without what is in sets.
    listing(exec, "nft", ["-a", "-t", "list", "table", family, table], signal),
  ]);
  return readingListing(() => readNftTable(family, table, JSON.parse(text), readShownTable(shown)));
}

async function readLegacy({ exec, read: readText }: ExternalTools, family: IPFamily, signal: AbortSignal): Promise<ExternalTables> {
  const names = await readText(family === "IPv4" ? "/proc/net/ip_tables_names" : "/proc/net/ip6_tables_names");
  const tables = (names ?? "").split("\n").filter((table) => IPTABLES_TABLES.has(table));
  const tool = family === "IPv4" ? "iptables-legacy" : "ip6tables-legacy";
  const found = await Promise.all(
    tables.map((table) => (table === "nat" ? readMet({ exec, tool, table, signal }) : readWhole({ exec, tool, table, signal }))),
  );
  return { ...NOTHING, tables: found.filter((table) => table !== undefined) };
}

interface IptablesReading {
  readonly exec: Exec;
  readonly tool: IptablesName;
  readonly table: string;
  readonly signal: AbortSignal;
}

/** All chains; `save` of the legacy variant waits for no lock. Undefined: it holds what iptables can't list, so nft has to. */
async function readWhole({ exec, tool, table, signal }: IptablesReading): Promise<ExternalTable | undefined> {
  const text = await (isLegacy(tool)
    ? listing(exec, `${tool}-save`, ["-t", table], signal)
    : listing(exec, programOf(tool), listArguments(table), signal));
  return OF_NFT.test(text) ? undefined : readIptablesTable(tool, table, text);
}

/**
 * All chains, without having the kernel walk those of other tables, which are a hundred thousand beside a service proxy. Undefined: the kernel counts more
 * than packets come to, so one of them may be nft's, or one can't be listed.
 */
async function readCounted(reading: IptablesReading, { chains, size }: NftTableName): Promise<ExternalTable | undefined> {
  const texts = await reachedFrom(chains, reading, { follows: () => true });
  return texts?.size === size ? tableOf(reading, texts) : undefined;
}

/** The chains of nat that packets come to, but for a service proxy's; all chains of the legacy variant where one can't be listed. */
async function readMet(reading: IptablesReading): Promise<ExternalTable | undefined> {
  const { exec, tool, table, signal } = reading;
  const list = (chain: string): Promise<string> => listing(exec, programOf(tool), listArguments(table, chain), signal);
  const texts = await reachedFrom(["PREROUTING", "OUTPUT", "POSTROUTING"], reading, {
    follows: (chain) => !isProxyChain(chain),
    ...(isLegacy(tool) ? {} : { otherwise: (open) => listOneByOne(open, list) }),
  });
  return texts === undefined ? await readWhole(reading) : tableOf(reading, texts);
}

function tableOf({ tool, table }: IptablesReading, texts: ReadonlyMap<string, string>): ExternalTable {
  return readIptablesTable(tool, table, [...texts.values()].join("\n"));
}

/** Which chains are read. */
interface Reached {
  follows(chain: string): boolean;
  /** Reads those of which one can't be listed; absent: then none is. */
  otherwise?(chains: readonly string[]): Promise<readonly string[]>;
}

/** List chains and those that they lead to, in a run for all that are found together. */
async function reachedFrom(
  chains: readonly string[],
  { exec, tool, table, signal }: IptablesReading,
  { follows, otherwise }: Reached,
): Promise<ReadonlyMap<string, string> | undefined> {
  const chainListing = { exec, restore: `${programOf(tool)}-restore`, options: { signal, timeoutMs: LIST_TIMEOUT_MS } };
  const texts = new Map<string, string>();
  for (let open = chains; open.length > 0;) {
    const places = open.map((chain) => ({ table, chain }));
    const found = (await listChains(places, chainListing)) ?? (await otherwise?.(open));
    if (found === undefined) return undefined;
    for (const [index, chain] of open.entries()) texts.set(chain, found[index] ?? "");
    const targets = found.flatMap((text) => [...text.matchAll(/ -[jg] (\S+)/g)].map(([, target = ""]) => target));
    open = [...new Set(targets)].filter((target) => !texts.has(target) && mayBeChain(target) && follows(target));
  }
  return texts;
}

/** Where one of them can't be listed: it is taken for a target that nobody here knows, if it is called like one. */
async function listOneByOne(chains: readonly string[], list: (chain: string) => Promise<string>): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const chain of chains) {
    try {
      texts.push(await list(chain));
    } catch (error) {
      if (!ProxyError.is(error, "tool_failed") || !/^[A-Z]+$/.test(chain)) throw error;
      texts.push("");
    }
  }
  return texts;
}
