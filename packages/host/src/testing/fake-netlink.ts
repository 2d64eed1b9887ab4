import type { Flow, Packet } from "@turnout/conformance";
import { FAMILIES, hostPort, isEqual, ProxyError } from "@turnout/core";
import type { FlowFilter, IPFamily } from "@turnout/core";
import { EventQueue } from "../queue/event-queue.ts";
import { createFlowMatcher } from "../netlink/conntrack/flow-matcher.ts";
import type { Device, DeviceRoute } from "../netlink/devices.ts";
import type { HostAddress } from "../netlink/host-addresses.ts";
import type { Netlink } from "../netlink/netlink.ts";
import type { LegacyTableInfo } from "../netlink/legacy-info.ts";
import type { NftChain } from "../netlink/nft/nft-chains.ts";
import type { NftChange } from "../netlink/nft/nft-changes.ts";
import type { NftPartsQuestion } from "../netlink/nft/nft-parts.ts";
import type { NftElements } from "../nft-statement/nft-statement.ts";
import type { NftTable, NftTableSink } from "../netlink/nft/nft-table.ts";
import type { NftEvent } from "../netlink/nft/nft-events.ts";
import type { NftFamily } from "../nft-statement/syntax.ts";

/** What a {@link FakeNetlink} starts with. */
export interface FakeNetlinkState {
  readonly addresses?: Readonly<Partial<Record<IPFamily, readonly HostAddress[]>>>;
  readonly flows?: readonly Flow[];
  readonly devices?: readonly Device[];
  readonly routes?: Readonly<Partial<Record<IPFamily, readonly DeviceRoute[]>>>;
  readonly chains?: readonly NftChain[];
}

/** The tables of nf_tables behind a {@link FakeNetlink}. */
export interface FakeNftTables {
  read(family: NftFamily, table: string): NftTable | undefined;
  /** Gives whether something changed. */
  write(statements: readonly NftElements[]): boolean;
  /** @throws {ProxyError} `not_found`. */
  remove(family: NftFamily, table: string): void;
}

/** A {@link Netlink} in memory. */
export interface FakeNetlink extends Netlink {
  /** The entries that are left, in order. */
  readonly flows: readonly Flow[];
  /**
   * Remember the UDP flow that a packet begins, which `endpoint` (`ip:port`) answers; undefined: its destination itself.
   *
   * Edges: other protocols leave nothing here. Every client sends from the same port, so the same flow again is no other one.
   */
  rememberFlow(packet: Packet, endpoint: string | undefined): void;
  /** Replace the addresses of a family and tell the watchers. */
  setAddresses(family: IPFamily, addresses: readonly HostAddress[]): void;
  /** Replace the devices and routes, and tell the watchers. */
  setDevices(devices: readonly Device[], routes?: FakeNetlinkState["routes"]): void;
  /** Serve nf_tables' tables; at first there are none. */
  serveNft(host: FakeNftTables): void;
  /** Have somebody tell how many members a set has; nobody does at first, and there are none. */
  serveSets(count: (name: string) => number | undefined): void;
  /** Have a table of legacy iptables hold so many rules; there is none at first. */
  setLegacyTable(family: IPFamily, table: string, entries: number): void;
  /** Play somebody's commit: the generation rises and watchers are told. */
  commitNft(by: {
    readonly pid: number;
    readonly process: string;
    readonly tables: readonly string[];
    /** Default: too much to tell. */
    readonly changes?: readonly NftChange[];
  }): void;
}

/** Make a {@link FakeNetlink}; which flows go is decided by the very function the real one uses. */
export function createFakeNetlink(state: FakeNetlinkState = {}): FakeNetlink {
  const addresses = new Map(FAMILIES.map((family) => [family, state.addresses?.[family] ?? []]));
  let flows: Flow[] = [...(state.flows ?? [])];
  let devices = state.devices ?? [];
  let routes = state.routes ?? {};
  let generation = 1;
  const legacy = new Map<string, LegacyTableInfo>();
  const nftWatchers = new Set<EventQueue<NftEvent>>();
  const addressWatchers = new Set<EventQueue<void>>();
  const deviceWatchers = new Set<EventQueue<void>>();
  const fake: FakeNetlink = {
    get flows(): readonly Flow[] {
      return flows;
    },
    rememberFlow({ family, protocol, source, destination, port }, endpoint = hostPort(destination, port)): void {
      const flow = { family, source, destination, port, endpoint };
      if (protocol === "UDP" && !flows.some((other) => isEqual(other, flow))) flows.push(flow);
    },
    setAddresses(family: IPFamily, replacement: readonly HostAddress[]): void {
      addresses.set(family, replacement);
      for (const watcher of addressWatchers) watcher.put();
    },
    setDevices(nextDevices, nextRoutes = {}): void {
      devices = nextDevices;
      routes = nextRoutes;
      for (const watcher of deviceWatchers) watcher.put();
    },
    commitNft({ changes, ...by }): void {
      generation++;
      for (const watcher of nftWatchers) watcher.put({ kind: "commit", generation, ...by, changes: () => changes });
    },
    setLegacyTable(family, table, entries): void {
      legacy.set(`${family} ${table}`, { entries, bytes: entries * 152, offsets: [] });
    },
    ...nftTables(() => void generation++),
    flowsOfClient: () => Promise.resolve([]),
    addresses: (family: IPFamily) => Promise.resolve(addresses.get(family) ?? []),
    addressesIn: () => Promise.resolve(undefined),
    devices: () => Promise.resolve(devices),
    routes: (family: IPFamily) => Promise.resolve(routes[family] ?? []),
    ...NO_COUNTERS,
    nftChains: () => Promise.resolve(state.chains ?? []),
    nftTables: () => Promise.resolve([]),
    legacyTables: () => Promise.resolve([]),
    ...setsOf(),
    legacyTableInfo: (family, table) => legacy.get(`${family} ${table}`),
    nftGeneration: () => Promise.resolve(generation),
    async deleteFlows(family: IPFamily, filters: readonly FlowFilter[], signal: AbortSignal): Promise<number> {
      if (signal.aborted) throw new ProxyError("canceled", "forgetting flows was given up", { cause: signal.reason });
      const local = (addresses.get(family) ?? []).map((address) => address.ip);
      const matcher = createFlowMatcher(filters, local);
      const left = flows.filter(
        ({ port, ...flow }) =>
          flow.family !== family || !matcher.matches({ port, destination: () => flow.destination, replySource: () => flow.endpoint }),
      );
      const deleted = flows.length - left.length;
      flows = left;
      return deleted;
    },
    watchNft: (signal: AbortSignal) => watch<NftEvent>(nftWatchers, 1024, { kind: "lost" }, signal),
    watchAddresses: (signal: AbortSignal) => watch<void>(addressWatchers, 1, undefined, signal),
    watchDevices: (signal: AbortSignal) => watch<void>(deviceWatchers, 1, undefined, signal),
    close(): void {
      // Nothing is open.
    },
  };
  return fake;
}

const NO_COUNTERS = {
  counterPackets: () => Promise.reject(noCounters()),
  createCounter: () => Promise.reject(noCounters()),
  deleteCounter: () => Promise.reject(noCounters()),
} satisfies Partial<Netlink>;

/** Sets of ipset, as somebody counts them. */
function setsOf(): Pick<FakeNetlink, "serveSets" | "setSizes"> {
  let sizeOf: (name: string) => number | undefined = () => undefined;
  return {
    serveSets(count): void {
      sizeOf = count;
    },
    setSizes(names): Promise<ReadonlyMap<string, number>> {
      const sizes = names.map((name) => [name, sizeOf(name)] as const);
      return Promise.resolve(new Map(sizes.filter((one): one is readonly [string, number] => one[1] !== undefined)));
    },
  };
}

/** Tables of nf_tables, as somebody serves them. */
function nftTables(
  commit: () => void,
): Pick<FakeNetlink, "serveNft" | "hasNftTable" | "nftParts" | "nftTable" | "prepareNftWrite" | "deleteNftTable"> {
  const absent = (): never => {
    throw new ProxyError("not_found", "there is no table of nf_tables");
  };
  let tables: FakeNftTables = { read: () => undefined, write: absent, remove: absent };
  return {
    serveNft(host): void {
      tables = host;
    },
    prepareNftWrite: (statements) => () =>
      new Promise((resolve) => {
        // As in the kernel: those who watch are not told.
        if (tables.write(statements)) commit();
        resolve();
      }),
    deleteNftTable: (family, table) =>
      new Promise((resolve) => {
        tables.remove(family, table);
        commit();
        resolve();
      }),
    hasNftTable: (family, table) => Promise.resolve(tables.read(family, table) !== undefined),
    nftParts(family, table, question): Promise<NftTable | undefined> {
      const found = tables.read(family, table);
      return Promise.resolve(found && partsOf(found, question));
    },
    nftTable<T extends NftTableSink>(family: NftFamily, table: string, open: () => T): Promise<T | undefined> {
      const found = tables.read(family, table);
      return Promise.resolve(found && filled(open(), found));
    },
  };
}

/** Leave of a table what is asked for. */
function partsOf({ sets, chains }: NftTable, { elements, chains: wanted }: NftPartsQuestion): NftTable {
  const asked = new Set(elements.map(({ set, key }) => `${set} ${key.map(({ text }) => text).join(" . ")}`));
  return {
    sets: new Map([...sets].map(([name, all]) => [name, all.filter(({ key }) => asked.has(`${name} ${key}`))])),
    chains: new Map([...chains].filter(([name]) => wanted.includes(name))),
  };
}

function filled<T extends NftTableSink>(sink: T, { sets, chains }: NftTable): T {
  for (const [name, chain] of chains) sink.chain?.(name, chain);
  for (const [name, elements] of sets) elements.forEach(sink.set(name) ?? (() => undefined));
  return sink;
}

/** The fake iptables knows no such match, so the kernel it belongs to has no counters. */
function noCounters(): ProxyError {
  return new ProxyError("host_unsupported", "this kernel has no nfnetlink_acct", { hint: "load it: modprobe xt_nfacct" });
}

function watch<T>(watchers: Set<EventQueue<T>>, limit: number, overflow: T, signal: AbortSignal): AsyncIterable<T> {
  const stop = (): void => {
    watchers.delete(queue);
    signal.removeEventListener("abort", stop);
    queue.end();
  };
  const queue = new EventQueue<T>(limit, overflow, stop);
  if (signal.aborted) {
    queue.end();
    return queue;
  }
  watchers.add(queue);
  signal.addEventListener("abort", stop, { once: true });
  return queue;
}
