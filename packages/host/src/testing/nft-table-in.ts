import { inNetworkNamespace } from "../bpf/namespace.ts";
import { DumpChannel } from "../netlink/dump-channel.ts";
import type { Netlink } from "../netlink/netlink.ts";
import { readNftTable } from "../netlink/nft-table.ts";
import { NETLINK } from "../netlink/socket.ts";

/**
 * Have tables of nf_tables read in another network namespace: for tests whose tools run in one of their own, beside a fake netlink.
 *
 * Shape: `namespace` is e.g. `/proc/123/ns/net` or `/run/netns/test`.
 */
export function nftTableIn(namespace: string): Netlink["nftTable"] {
  const openChannel = (): DumpChannel => inNetworkNamespace(namespace, () => new DumpChannel(NETLINK.netfilter));
  return (family, table, open) => readNftTable(openChannel, family, table, open);
}
