import { inNetworkNamespace } from "../bpf/sockets/namespace.ts";
import { NetlinkChannel, openSocket } from "../netlink/channel.ts";
import type { Netlink } from "../netlink/netlink.ts";
import { readNftTable } from "../netlink/nft/nft-table.ts";
import { deleteNftTable, prepareNftWrite } from "../netlink/nft/nft-write.ts";
import { NETLINK } from "../netlink/socket.ts";
import { WriteChannel } from "../netlink/write-channel.ts";

/**
 * The tables of nf_tables in another network namespace, to read and to write: for tests whose tools run in one of their own, beside a fake netlink.
 *
 * Shape: `namespace` is e.g. `/proc/123/ns/net` or `/run/netns/test`.
 */
export function nftTableIn(namespace: string): Pick<Netlink, "nftTable" | "prepareNftWrite" | "deleteNftTable"> {
  const inside = <T>(open: () => T): T => inNetworkNamespace(namespace, open);
  let writing: WriteChannel | undefined;
  const reading = (): NetlinkChannel => new NetlinkChannel(NETLINK.netfilter, (protocol) => inside(() => openSocket(protocol)));
  const written = (): WriteChannel => (writing ??= inside(() => new WriteChannel(NETLINK.netfilter)));
  return {
    nftTable: (family, table, open) => readNftTable(reading, family, table, open),
    prepareNftWrite: (statements) => prepareNftWrite(written, statements),
    deleteNftTable: (family, table) => deleteNftTable(written, family, table),
  };
}
