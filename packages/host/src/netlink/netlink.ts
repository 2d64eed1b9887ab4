import type { Clock, FlowFilter, IPFamily } from "@turnout/core";
import { createCounter, deleteCounter, readCounter } from "./accounting.ts";
import { NetlinkChannel } from "./channel.ts";
import { listDevices, listRoutes } from "./devices.ts";
import type { Device, DeviceRoute } from "./devices.ts";
import { DumpChannel } from "./dump-channel.ts";
import { deleteMatchingFlows } from "./flow-deletion.ts";
import { listFlows } from "./flow-list.ts";
import type { Flow, FlowQuestion } from "./flow-list.ts";
import { needsLocalAddresses } from "./flow-matcher.ts";
import { listAddresses } from "./host-addresses.ts";
import type { HostAddress } from "./host-addresses.ts";
import { legacyTableInfo } from "./legacy-info.ts";
import type { LegacyTableInfo } from "./legacy-info.ts";
import { legacyTables } from "./legacy-tables.ts";
import { listChains } from "./nft-chains.ts";
import type { NftChain } from "./nft-chains.ts";
import { NftEventReader, readGeneration } from "./nft-events.ts";
import { readNftParts } from "./nft-parts.ts";
import type { NftPartsQuestion } from "./nft-parts.ts";
import type { NftElements } from "../nft-statement/nft-statement.ts";
import { listNftTables } from "./nft-tables.ts";
import type { NftTableName } from "./nft-tables.ts";
import { hasTable, readNftTable } from "./nft-table.ts";
import type { NftTable, NftTableSink } from "./nft-table.ts";
import { listAddressesIn } from "./namespace-addresses.ts";
import { openMulticastSocket } from "./multicast-socket.ts";
import type { NftEvent } from "./nft-events.ts";
import { listSetSizes } from "./set-sizes.ts";
import { NETLINK } from "./socket.ts";
import { deleteNftTable, prepareNftWrite } from "./nft-write.ts";
import { watch } from "./watch.ts";
import type { WatchHandlers } from "./watch.ts";
import { WriteChannel } from "./write-channel.ts";

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
  nftTable<T extends NftTableSink>(family: "ip" | "ip6", table: string, open: () => T): Promise<T | undefined>;
  /**
   * Make a transaction of elements of nf_tables, in the kernel's own bytes; it is carried out when what comes back is called, as a whole or not at all.
   * @throws {ProxyError} from that function: what the kernel refused, `not_found`, `already_exists`, `permission_denied`, `tool_failed`.
   */
  prepareNftWrite(statements: readonly NftElements[]): () => Promise<void>;
  /** Remove a table of nf_tables with everything in it. @throws {ProxyError} `not_found` where it isn't there; what else the kernel refused. */
  deleteNftTable(family: "inet" | "ip" | "ip6", table: string): Promise<void>;
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
  /** Close the sockets of requests; what is under way fails with `canceled`. Watches end by their signal. */
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
    addressesIn: (namespace, family) => listAddressesIn(() => new DumpChannel(NETLINK.route), namespace, family),
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
    nftChains: () => listChains(() => new DumpChannel(NETLINK.netfilter)),
    nftTables: () => listNftTables(nft),
    legacyTables,
    legacyTableInfo,
    setSizes: (names) => listSetSizes(nft, names),
    nftGeneration: (): Promise<number> => readGeneration(nft),
    hasNftTable: (family, table) => hasTable(nft, family, table),
    nftParts: (family, table, question) => readNftParts(nft, family, table, question),
    nftTable: (family, table, open) => readNftTable(() => new DumpChannel(NETLINK.netfilter), family, table, open),
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
