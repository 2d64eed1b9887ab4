import { ProxyError } from "@turnout/core/backend";
import type { Leftover } from "@turnout/core/backend";
import type { Netlink } from "@turnout/host";
import { readListing } from "@turnout/host/nft";
import type { NftSession } from "@turnout/host/nft";
import { TABLE } from "./names.ts";

/** The table of kube-proxy's nftables mode. Its rules are not ours to adopt: they go once ours are in force. */
const KUBE_PROXY_TABLE = "kube-proxy";
const INSTALL = "apt-get install nftables, or run it where nft is installed";

/** Tell which of a family's tables, as `nft -j list tables` prints them, are a service proxy's that is not in use. Pure. */
export function leftoverTables(listed: string, isInUse: boolean): readonly string[] {
  const names = new Set(readListing(listed).tables);
  return (isInUse ? [KUBE_PROXY_TABLE] : [TABLE, KUBE_PROXY_TABLE]).filter((name) => names.has(name));
}

/** Find the tables that proxies which are not in use left. @throws {ProxyError} what nft fails with. */
export async function findLeftovers(
  session: Pick<NftSession, "listTables" | "dropTable">,
  family: "ip" | "ip6",
  isInUse: boolean,
  signal: AbortSignal,
): Promise<readonly Leftover[]> {
  return leftoverTables(await session.listTables(family, signal), isInUse).map((name) => ({
    what: `table ${family} ${name}`,
    by: name === TABLE ? "turnout" : "kube-proxy",
    remove: (stop) => session.dropTable(family, name, stop),
  }));
}

/**
 * Look for tables of service proxies with nft, or remove them.
 * @throws {ProxyError} what `work` fails with; where nft is not installed, but the kernel has such a table, that is said.
 */
export async function lookingFor<T>(work: () => Promise<T>, netlink: Pick<Netlink, "nftChains">, family: "ip" | "ip6"): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!ProxyError.is(cause, "tool_missing")) throw cause;
    const found = (await netlink.nftChains()).find((chain) => chain.family === family && [TABLE, KUBE_PROXY_TABLE].includes(chain.table));
    if (found === undefined) throw cause;
    const object = `table ${family} ${found.table}`;
    throw new ProxyError("host_unsupported", "nft is not installed, but the kernel has its rules", { object, hint: INSTALL, cause });
  }
}
