import { ProxyError } from "@turnout/core/backend";
import type { Leftover } from "@turnout/core/backend";
import { installHint } from "@turnout/host";
import type { Netlink } from "@turnout/host";
import type { NftSession } from "@turnout/host/nft";
import { TABLE } from "./names.ts";

/** The table of kube-proxy's nftables mode. Its rules are not ours to adopt: they go once ours are in force. */
const KUBE_PROXY_TABLE = "kube-proxy";

/** Find the tables that proxies which are not in use left. @throws {ProxyError} what asking the kernel fails with. */
export async function findLeftovers(
  session: Pick<NftSession, "dropTable">,
  netlink: Pick<Netlink, "hasNftTable" | "nftChains">,
  family: "ip" | "ip6",
  isInUse: boolean,
): Promise<readonly Leftover[]> {
  const found: Leftover[] = [];
  for (const name of isInUse ? [KUBE_PROXY_TABLE] : [TABLE, KUBE_PROXY_TABLE]) {
    if (!(await netlink.hasNftTable(family, name))) continue;
    const remove = (stop: AbortSignal): Promise<void> => removing(() => session.dropTable(family, name, stop), netlink, family);
    found.push({ what: `table ${family} ${name}`, by: name === TABLE ? "turnout" : "kube-proxy", remove });
  }
  return found;
}

/**
 * Remove tables of service proxies with nft.
 * @throws {ProxyError} what `work` fails with; where nft is not installed, but the kernel has such a table, that is said.
 */
export async function removing(work: () => Promise<void>, netlink: Pick<Netlink, "nftChains">, family: "ip" | "ip6"): Promise<void> {
  try {
    return await work();
  } catch (cause) {
    if (!ProxyError.is(cause, "tool_missing")) throw cause;
    const found = (await netlink.nftChains()).find((chain) => chain.family === family && [TABLE, KUBE_PROXY_TABLE].includes(chain.table));
    if (found === undefined) throw cause;
    const object = `table ${family} ${found.table}`;
    throw new ProxyError("host_unsupported", "nft is not installed, but the kernel has its rules", {
      object,
      hint: installHint("nft"),
      cause,
    });
  }
}
