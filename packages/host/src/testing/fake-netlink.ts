import { ProxyError } from "@turnout/core";
import type { FlowFilter, IPFamily } from "@turnout/core";
import { EventQueue } from "../netlink/event-queue.ts";
import { canonicalHostPort, createFlowMatcher } from "../netlink/flow-matcher.ts";
import type { Device, DeviceRoute } from "../netlink/devices.ts";
import type { HostAddress } from "../netlink/host-addresses.ts";
import type { Netlink } from "../netlink/netlink.ts";
import type { NftChain } from "../netlink/nft-chains.ts";
import type { NftParts } from "../netlink/nft-parts.ts";
import type { NftChange } from "../netlink/nft-changes.ts";
import type { NftEvent } from "../netlink/nft-events.ts";

/** A conntrack entry of the fake; texts are `ip:port` or `[ip]:port`. */
export interface FakeFlow {
  readonly protocol: "TCP" | "UDP" | "SCTP";
  readonly source: string;
  /** Where the client sent it. */
  readonly destination: string;
  /** Who answers: the endpoint, or the destination itself when nothing was translated. */
  readonly replySource: string;
}

/** What a {@link FakeNetlink} starts with. */
export interface FakeNetlinkState {
  readonly addresses?: Readonly<Partial<Record<IPFamily, readonly HostAddress[]>>>;
  readonly flows?: readonly FakeFlow[];
  readonly devices?: readonly Device[];
  readonly routes?: Readonly<Partial<Record<IPFamily, readonly DeviceRoute[]>>>;
  readonly chains?: readonly NftChain[];
}

/** A {@link Netlink} in memory. */
export interface FakeNetlink extends Netlink {
  /** The entries that are left, in order. */
  readonly flows: readonly FakeFlow[];
  /** Add an entry. @throws {ProxyError} `invalid_object` for a text that isn't `ip:port`. */
  addFlow(flow: FakeFlow): void;
  /** Replace the addresses of a family and tell the watchers. */
  setAddresses(family: IPFamily, addresses: readonly HostAddress[]): void;
  /** Replace the devices and routes, and tell the watchers. */
  setDevices(devices: readonly Device[], routes?: FakeNetlinkState["routes"]): void;
  /** Have somebody answer what is asked of nf_tables' tables; nobody does at first, and there are none. */
  serveNft(parts: Netlink["nftParts"]): void;
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
  const addresses = new Map<IPFamily, readonly HostAddress[]>([
    ["IPv4", state.addresses?.IPv4 ?? []],
    ["IPv6", state.addresses?.IPv6 ?? []],
  ]);
  let flows: FakeFlow[] = [];
  let devices = state.devices ?? [];
  let routes = state.routes ?? {};
  let generation = 1;
  let nftParts: Netlink["nftParts"] = (): Promise<NftParts | undefined> => Promise.resolve(undefined);
  const nftWatchers = new Set<EventQueue<NftEvent>>();
  const addressWatchers = new Set<EventQueue<void>>();
  const deviceWatchers = new Set<EventQueue<void>>();
  const fake: FakeNetlink = {
    get flows(): readonly FakeFlow[] {
      return flows;
    },
    addFlow(flow: FakeFlow): void {
      for (const text of [flow.source, flow.destination, flow.replySource]) canonicalHostPort(familyOf(flow), text);
      flows.push(flow);
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
    serveNft(parts): void {
      nftParts = parts;
    },
    flowsOfClient: () => Promise.resolve([]),
    nftParts: (family, table, question) => nftParts(family, table, question),
    addresses: (family: IPFamily) => Promise.resolve(addresses.get(family) ?? []),
    devices: () => Promise.resolve(devices),
    routes: (family: IPFamily) => Promise.resolve(routes[family] ?? []),
    counterPackets: () => Promise.reject(noCounters()),
    createCounter: () => Promise.reject(noCounters()),
    deleteCounter: () => Promise.reject(noCounters()),
    nftChains: () => Promise.resolve(state.chains ?? []),
    legacyTables: () => Promise.resolve([]),
    nftGeneration: () => Promise.resolve(generation),
    async deleteFlows(family: IPFamily, filters: readonly FlowFilter[], signal: AbortSignal): Promise<number> {
      if (signal.aborted) throw new ProxyError("canceled", "forgetting flows was given up", { cause: signal.reason });
      const local = (addresses.get(family) ?? []).map((address) => address.ip);
      const matcher = createFlowMatcher(family, filters, local);
      const left = flows.filter((flow) => flow.protocol !== "UDP" || familyOf(flow) !== family || !matcher.matches(viewOf(flow, family)));
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
  for (const flow of state.flows ?? []) fake.addFlow(flow);
  return fake;
}

/** The fake iptables knows no such match, so the kernel it belongs to has no counters. */
function noCounters(): ProxyError {
  return new ProxyError("host_unsupported", "this kernel has no nfnetlink_acct", { hint: "load it: modprobe xt_nfacct" });
}

function familyOf(flow: FakeFlow): IPFamily {
  return flow.destination.startsWith("[") ? "IPv6" : "IPv4";
}

function viewOf(flow: FakeFlow, family: IPFamily): Parameters<ReturnType<typeof createFlowMatcher>["matches"]>[0] {
  const destination = canonicalHostPort(family, flow.destination);
  const colon = destination.lastIndexOf(":");
  const address = destination.slice(0, colon);
  return {
    port: Number(destination.slice(colon + 1)),
    destination: () => (family === "IPv6" ? address.slice(1, -1) : address),
    replySource: () => canonicalHostPort(family, flow.replySource),
  };
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
