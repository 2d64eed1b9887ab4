import { ProxyError } from "@turnout/core";
import type { Clock, FlowFilter, IPFamily } from "@turnout/core";
import { readFile } from "node:fs/promises";
import { createCounter, deleteCounter, readCounter } from "./conntrack/accounting.ts";
import { NetlinkChannel } from "./channel.ts";
import { listDevices, listRoutes } from "./devices.ts";
import type { Device, DeviceRoute } from "./devices.ts";
import { deleteMatchingFlows } from "./conntrack/flow-deletion.ts";
import { listFlows } from "./conntrack/flow-list.ts";
import type { Flow, FlowQuestion } from "./conntrack/flow-list.ts";
import { needsLocalAddresses } from "./conntrack/flow-matcher.ts";
import { listAddresses, addressRequest, consistentDump, IFADDRMSG_LENGTH, parseAddress } from "./host-addresses.ts";
import type { HostAddress } from "./host-addresses.ts";
import { legacyTableInfo } from "./legacy-info.ts";
import type { LegacyTableInfo } from "./legacy-info.ts";
import { listChains } from "./nft/nft-chains.ts";
import type { NftChain } from "./nft/nft-chains.ts";
import { NftEventReader, readGeneration } from "./nft/nft-events.ts";
import type { NftEvent } from "./nft/nft-events.ts";
import { readNftParts } from "./nft/nft-parts.ts";
import type { NftPartsQuestion } from "./nft/nft-parts.ts";
import type { NftElements } from "../nft-statement/nft-statement.ts";
import { listNftTables } from "./nft/nft-tables.ts";
import type { NftTableName } from "./nft/nft-tables.ts";
import { hasTable, readNftTable } from "./nft/nft-table.ts";
import type { NftTable, NftTableSink } from "./nft/nft-table.ts";
import { openMulticastSocket } from "./multicast-socket.ts";
import { NETLINK } from "./socket.ts";
import { deleteNftTable, prepareNftWrite } from "./nft/nft-write.ts";
import { watch } from "./watch.ts";
import type { WatchHandlers } from "./watch.ts";
import { WriteChannel } from "./write-channel.ts";
import { attribute, findAttribute, host32, zeroEnded } from "./message.ts";
import { errno, kernelError } from "./errno.ts";
import type { NftFamily } from "../nft-statement/syntax.ts";

// @source linux/netfilter/nfnetlink.h NFNL_SUBSYS_IPSET, linux/netfilter/ipset/ip_set.h IPSET_CMD_LIST
const LIST = (6 << 8) | 7;
const ATTRIBUTE = { protocol: 1, name: 2, flags: 6, data: 7, elements: 24 } as const;
/** @source IPSET_PROTOCOL_MIN */
const PROTOCOL = 6;
/** Without the members. @source IPSET_FLAG_LIST_HEADER */
const HEADERS_ONLY = 4;
/** Numbers of attributes in network order, and those that hold others, are marked. */
const NET_ORDER = 0x4000;
const NFGENMSG = Buffer.from([2, 0, 0, 0]);

/**
 * Count the members of some sets of ipset, by name, without listing them. The kernel goes through them, so it takes a microsecond for each.
 *
 * Edges: sets that aren't there are missing, and so are all where the kernel has no sets.
 * @throws {ProxyError} what the channel throws, and the kernel's refusal.
 */
async function listSetSizes(channel: Pick<NetlinkChannel, "dump">, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const flags = Buffer.alloc(4);
  flags.writeUInt32BE(HEADERS_ONLY);
  const sizes = new Map<string, number>();
  for (const name of names) {
    const request = Buffer.concat([
      NFGENMSG,
      attribute(ATTRIBUTE.protocol, Buffer.from([PROTOCOL])),
      attribute(ATTRIBUTE.name, zeroEnded(name)),
      attribute(ATTRIBUTE.flags | NET_ORDER, flags),
    ]);
    const { errno: value } = await channel.dump(LIST, request, (_, payload) => {
      const data = findAttribute(payload, ATTRIBUTE.data, NFGENMSG.length);
      const elements = data === undefined ? undefined : findAttribute(data, ATTRIBUTE.elements);
      if (elements !== undefined) sizes.set(name, elements.readUInt32BE());
    });
    if (value !== 0 && value !== errno("EINVAL") && value !== errno("ENOENT"))
      throw kernelError(value, "the members of a set can't be counted", { object: name });
  }
  return sizes;
}

// @source linux/rtnetlink.h, linux/if_addr.h
const RTM_GETADDR = 22;
const IFA_TARGET_NETNSID = 10;

/**
 * List the addresses of one family in another network namespace, which this one knows by a number: that of a pod, behind a pair of devices.
 *
 * Edges: undefined where the kernel doesn't tell: it is older than 4.20, the number is nobody's, or this process has no rights there.
 */
async function listAddressesIn(open: () => NetlinkChannel, namespace: number, family: IPFamily): Promise<readonly string[] | undefined> {
  const channel = open();
  try {
    const request = Buffer.concat([addressRequest(family), attribute(IFA_TARGET_NETNSID, host32(namespace))]);
    let isNotified = true;
    const found = await consistentDump(channel, RTM_GETADDR, request, "addresses", (payload) => {
      // An older kernel reads over what it doesn't know, and lists this namespace.
      isNotified &&= findAttribute(payload, IFA_TARGET_NETNSID, IFADDRMSG_LENGTH) !== undefined;
      return parseAddress(payload, family)?.ip;
    });
    return isNotified ? found : undefined;
  } catch (error) {
    if (ProxyError.is(error)) return undefined;
    throw error;
  } finally {
    channel.close();
  }
}

// Multicast groups. @source linux/rtnetlink.h, linux/netfilter/nfnetlink.h
const IFADDR_GROUPS = [5, 9] as const;
const NFTABLES_GROUPS = [7] as const;
/** Links, and routes of both families. */
const DEVICE_GROUPS = [1, 7, 11] as const;
/** Commits kept for a slow reader before they collapse into "lost". */
const MAX_UNREAD_COMMITS = 1024;

/** The way to the kernel, for one network namespace. */
export interface Netlink {
  /** All addresses of one family on this host, tentative and deprecated ones too. */
  addresses(family: IPFamily): Promise<readonly HostAddress[]>;
  /** The addresses of one family in another network namespace, see {@link Device.namespace}; undefined: the kernel doesn't tell. */
  addressesIn(namespace: number, family: IPFamily): Promise<readonly string[] | undefined>;
  /** All devices of this network namespace. */
  devices(): Promise<readonly Device[]>;
  /** The ways of one family's routes in the main table, to somebody by a device. */
  routes(family: IPFamily): Promise<readonly DeviceRoute[]>;
  /** A client's conntrack entries to one address and port. */
  flowsOfClient(family: IPFamily, question: FlowQuestion): Promise<readonly Flow[]>;
  /** Delete the matching conntrack entries; resolves to how many went. None goes that was not seen before `signal` aborted. */
  deleteFlows(family: IPFamily, flows: readonly FlowFilter[], signal: AbortSignal): Promise<number>;
  /** How many packets a named counter (`nfacct`) has; undefined: there is none. @throws {ProxyError} `host_unsupported` without nfnetlink_acct. */
  counterPackets(name: string): Promise<number | undefined>;
  /** Make a named counter, unless there is one. @throws as {@link Netlink.counterPackets}. */
  createCounter(name: string): Promise<void>;
  /** Delete a named counter, unless a rule uses it or there is none. @throws as {@link Netlink.counterPackets}. */
  deleteCounter(name: string): Promise<void>;
  /** All chains of nf_tables, iptables' among them, without their rules; empty where the kernel has none. */
  nftChains(): Promise<readonly NftChain[]>;
  /** All tables of nf_tables, iptables' among them, however many chains they have; empty where the kernel has none. */
  nftTables(): Promise<readonly NftTableName[]>;
  /** The tables that legacy iptables has made; naming them makes none. @throws {ProxyError} `permission_denied` where only root may know. */
  legacyTables(family: IPFamily): Promise<readonly string[]>;
  /** How much a table of legacy iptables holds that is known to be there, without a program; undefined: there is none. @throws {ProxyError} */
  legacyTableInfo(family: IPFamily, table: string): LegacyTableInfo | undefined;
  /** How many members some sets of ipset have, by name; those that aren't there are missing. */
  setSizes(names: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** The nf_tables ruleset generation: changes whenever anybody commits. */
  nftGeneration(): Promise<number>;
  /** Whether there is such a table of nf_tables, whatever else there is. */
  hasNftTable(family: "ip" | "ip6", table: string): Promise<boolean>;
  /** Read single elements and chains of one nf_tables table, whatever else is in it; undefined: there is no such table. */
  nftParts(family: "ip" | "ip6", table: string, question: NftPartsQuestion): Promise<NftTable | undefined>;
  /**
   * Read a table of nf_tables, as it was after one commit, into what `open` gives; undefined: there is no such table.
   *
   * Edges: `open` is called again where somebody commits meanwhile. Sets of ranges, and of other parts than addresses, protocols, ports and
   * numbers, are left out.
   */
  nftTable<T extends NftTableSink>(family: NftFamily, table: string, open: () => T): Promise<T | undefined>;
  /**
   * Make a transaction of elements of nf_tables, in the kernel's own bytes; it is carried out when what comes back is called, as a whole or not at all.
   * @throws {ProxyError} from that function: what the kernel refused, `not_found`, `already_exists`, `permission_denied`, `tool_failed`.
   */
  prepareNftWrite(statements: readonly NftElements[]): () => Promise<void>;
  /** Remove a table of nf_tables with everything in it. @throws {ProxyError} `not_found` where it isn't there; what else the kernel refused. */
  deleteNftTable(family: NftFamily, table: string): Promise<void>;
  /**
   * Follow changes to the nf_tables ruleset, whoever makes them, but for those of {@link Netlink.prepareNftWrite} and {@link Netlink.deleteNftTable}.
   *
   * Edges: subscribed when this returns, so state read afterwards misses nothing; ends on abort. `lost` means that
   * commits went unseen: look for yourself.
   * @throws {ProxyError} `host_unsupported`, `permission_denied`, `tool_failed`.
   */
  watchNft(signal: AbortSignal): AsyncIterable<NftEvent>;
  /** Follow changes to the host's addresses; any number of changes since the last look is one. Edges and throws as {@link Netlink.watchNft}. */
  watchAddresses(signal: AbortSignal): AsyncIterable<void>;
  /** Follow changes to devices and routes, as {@link Netlink.watchAddresses}. */
  watchDevices(signal: AbortSignal): AsyncIterable<void>;
  /** Close the sockets of requests once what is under way has ended; what has not begun fails with `canceled`. Watches end by their signal. */
  close(): void;
}

/**
 * Make the real {@link Netlink}, for the network namespace of this process.
 *
 * Shape: `clock` paces the watches, which look when the kernel says that something came.
 * Edges: sockets are opened on first use; idle ones don't keep the process alive, watches do.
 */
export function createNetlink({ clock }: { readonly clock: Clock }): Netlink {
  const route = new NetlinkChannel(NETLINK.route);
  // Two, so that walking a large conntrack table does not hold up the question for the generation.
  const conntrack = new NetlinkChannel(NETLINK.netfilter);
  const nft = new NetlinkChannel(NETLINK.netfilter);
  let writing: WriteChannel | undefined;
  const written = (): WriteChannel => (writing ??= new WriteChannel(NETLINK.netfilter));
  return {
    addresses: (family: IPFamily): Promise<readonly HostAddress[]> => listAddresses(route, family),
    addressesIn: (namespace, family) => listAddressesIn(() => new NetlinkChannel(NETLINK.route), namespace, family),
    devices: () => listDevices(route),
    routes: (family: IPFamily) => listRoutes(route, family),
    flowsOfClient: (family: IPFamily, question: FlowQuestion) => listFlows(conntrack, family, question),
    async deleteFlows(family: IPFamily, flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> {
      const local = needsLocalAddresses(flows) ? await listAddresses(route, family) : [];
      const addresses = local.map((address) => address.ip);
      return deleteMatchingFlows(conntrack, family, flows, addresses, signal);
    },
    counterPackets: (name) => readCounter(nft, name),
    createCounter: (name) => createCounter(nft, name),
    deleteCounter: (name) => deleteCounter(nft, name),
    nftChains: () => listChains(() => new NetlinkChannel(NETLINK.netfilter)),
    nftTables: () => listNftTables(nft),
    legacyTables,
    legacyTableInfo,
    setSizes: (names) => listSetSizes(nft, names),
    nftGeneration: (): Promise<number> => readGeneration(nft),
    hasNftTable: (family, table) => hasTable(nft, family, table),
    nftParts: (family, table, question) => readNftParts(nft, family, table, question),
    nftTable: (family, table, open) => readNftTable(() => new NetlinkChannel(NETLINK.netfilter), family, table, open),
    prepareNftWrite: (statements) => prepareNftWrite(written, statements),
    deleteNftTable: (family, table) => deleteNftTable(written, family, table),
    watchNft: (signal: AbortSignal) => watchNft(clock, signal, written().port),
    watchAddresses: (signal: AbortSignal) => watchChanges(IFADDR_GROUPS, clock, signal),
    watchDevices: (signal: AbortSignal) => watchChanges(DEVICE_GROUPS, clock, signal),
    close(): void {
      for (const channel of [route, conntrack, nft]) channel.close();
      writing?.close();
      writing = undefined;
    },
  };
}

function watchNft(clock: Clock, signal: AbortSignal, ignoring: number): AsyncIterable<NftEvent> {
  const reader = new NftEventReader();
  const handlers: WatchHandlers<NftEvent> = {
    onMessage(message, put): void {
      const event = reader.receive(message);
      if (event !== undefined) put(event);
    },
    onLost(put): void {
      reader.reset();
      put({ kind: "lost" });
    },
    limit: MAX_UNREAD_COMMITS,
    overflow: { kind: "lost" },
  };
  return watch(() => openMulticastSocket(NETLINK.netfilter, NFTABLES_GROUPS, { ignoring }), handlers, clock, signal);
}

/** Any number of changes since the last look is one. */
function watchChanges(groups: readonly number[], clock: Clock, signal: AbortSignal): AsyncIterable<void> {
  const onChange = (_: unknown, put: () => void): void => put();
  const handlers: WatchHandlers<void> = { onMessage: onChange, onLost: (put) => put(), limit: 1, overflow: undefined };
  return watch(() => openMulticastSocket(NETLINK.route, groups), handlers, clock, signal);
}

/**
 * Name the tables that legacy iptables has made in this network namespace; looking makes none.
 *
 * Edges: empty where the kernel has no legacy iptables.
 * @throws {ProxyError} `permission_denied` where only root may know.
 */
async function legacyTables(family: IPFamily): Promise<readonly string[]> {
  const path = `/proc/thread-self/net/${family === "IPv4" ? "ip_tables_names" : "ip6_tables_names"}`;
  try {
    return (await readFile(path, "utf8")).split("\n").filter((name) => name !== "");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT") return [];
    const isDenied = code === "EACCES" || code === "EPERM";
    throw ProxyError.from(error, isDenied ? "permission_denied" : "tool_failed", "the tables of legacy iptables can't be named", {
      object: path,
    });
  }
}
