import type { Leftover } from "@turnout/core/backend";
import type { Netlink, OwnCommits } from "@turnout/host";
import { dropNftTable } from "@turnout/host/nft";
import { TABLE } from "./names.ts";

/** The table of kube-proxy's nftables mode. Its rules are not ours to adopt: they go once ours are in force. */
const KUBE_PROXY_TABLE = "kube-proxy";

/** Find the tables that proxies which are not in use left. @throws {ProxyError} what asking the kernel fails with. */
export async function findLeftovers(
  host: { readonly own: OwnCommits; readonly netlink: Pick<Netlink, "hasNftTable" | "deleteNftTable"> },
  family: "ip" | "ip6",
  isInUse: boolean,
): Promise<readonly Leftover[]> {
  const found: Leftover[] = [];
  for (const name of isInUse ? [KUBE_PROXY_TABLE] : [TABLE, KUBE_PROXY_TABLE]) {
    if (!(await host.netlink.hasNftTable(family, name))) continue;
    const remove = (): Promise<void> => dropNftTable(host, family, name);
    found.push({ what: `table ${family} ${name}`, by: name === TABLE ? "turnout" : "kube-proxy", remove });
  }
  return found;
}
