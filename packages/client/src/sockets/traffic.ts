import type { IPFamily, Log } from "@turnout/core";
import { AffinityTable } from "./affinity.ts";
import { choose, fateOf, isLoopback } from "./decide.ts";
import type { Client, Endpoint, HostView, Policy } from "./decide.ts";
import type { Transport } from "./listeners.ts";
import { OwnSockets } from "./own-sockets.ts";
import { Shares } from "./shares.ts";
import type { SocketAddress, TrafficWorld } from "./sockets.ts";

const EVERY_MS = 60_000;
const SUBJECTS_MAX = 1_000;

/** Warns of something that may happen with every connection: once a minute for each subject, with how often it was meanwhile. */
class QuietLog {
  readonly #log: Log;
  readonly #nowMs: () => number;
  readonly #said = new Map<string, { atMs: number; unsaid: number }>();

  constructor(log: Log, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** Warn, unless it was said within the last minute. `subject` is one of few. */
  warn(message: string, subject: string, fields: Readonly<Record<string, unknown>> = {}): void {
    const key = `${message} ${subject}`;
    const nowMs = this.#nowMs();
    const said = this.#said.get(key);
    if (said !== undefined && nowMs - said.atMs < EVERY_MS) {
      said.unsaid++;
      return;
    }
    this.#log.warn(message, { subject, ...fields, ...(said === undefined || said.unsaid === 0 ? {} : { alsoUnsaid: said.unsaid }) });
    this.#said.delete(key);
    this.#said.set(key, { atMs: nowMs, unsaid: 0 });
    if (this.#said.size > SUBJECTS_MAX) for (const oldest of this.#said.keys()) return void this.#said.delete(oldest);
  }
}

/** How traffic is carried. Times in seconds. */
export interface TrafficOptions {
  /** Endpoints (`ip:port`) that are dialled elsewhere. */
  readonly endpointMap: ReadonlyMap<string, { readonly ip: string; readonly port: number }>;
  readonly balance: "random" | "round-robin";
  /** A connection to an endpoint or on an address that went is cut after this long; 0: it may last. */
  readonly drainSeconds: number;
  readonly dialSeconds: number;
  /** A TCP connection on which nothing moves is closed after this long; 0: it may last. */
  readonly tcpIdleSeconds: number;
  readonly udpIdleSeconds: number;
  /** TCP connections of all that share {@link SharedSockets}, and of one listener. */
  readonly maxConnections: number;
  readonly maxConnectionsPerListener: number;
  readonly maxUdpSessions: number;
}

/** Something that is open, and may have to give its place to another. */
export interface Open {
  end(): void;
}

/** What both families share: limits concern the process. */
export class SharedSockets {
  readonly connections: Shares<Open>;
  readonly sessions: Shares<Open>;
  readonly own: OwnSockets = new OwnSockets();

  constructor({ maxConnections, maxUdpSessions }: Pick<TrafficOptions, "maxConnections" | "maxUdpSessions">) {
    this.connections = new Shares(maxConnections);
    this.sessions = new Shares(maxUdpSessions);
  }
}

/** What one family has seen since its start. */
export interface Seen {
  connections: number;
  sessions: number;
  /** Over a limit. */
  refused: number;
  failedDials: number;
}

/** What all of one family's traffic shares. */
export class Traffic {
  readonly family: IPFamily;
  readonly world: TrafficWorld;
  readonly options: TrafficOptions;
  readonly shared: SharedSockets;
  readonly affinity: AffinityTable;
  readonly log: QuietLog;
  readonly seen: Seen = { connections: 0, sessions: 0, refused: 0, failedDials: 0 };
  /** How clients are told apart; nobody is anything before it is known. */
  host: HostView = { addresses: new Set(), pods: [] };

  constructor(family: IPFamily, world: TrafficWorld, options: TrafficOptions, shared: SharedSockets) {
    this.family = family;
    this.world = world;
    this.options = options;
    this.shared = shared;
    const nowMs = (): number => world.clock.nowMs();
    this.affinity = new AffinityTable(nowMs);
    this.log = new QuietLog(world.log, nowMs);
  }

  nowMs(): number {
    return this.world.clock.nowMs();
  }

  /** Where an endpoint is connected to. */
  placeOf(endpoint: Endpoint): SocketAddress {
    return this.options.endpointMap.get(endpoint.text) ?? endpoint;
  }

  /** Whether a connection to an endpoint would come to this process itself. */
  isOwn(transport: Transport, endpoint: Endpoint): boolean {
    return this.shared.own.has(transport, this.placeOf(endpoint), ({ ip }) => isLoopback(ip) || this.host.addresses.has(ip));
  }
}

const NONE: ReadonlySet<string> = new Set();
/** So many endpoints that are sockets of this proxy are left out for one client. */
const OWN_MAX = 64;

/** Takes turns, or chooses by chance. */
export class Balancer {
  readonly #traffic: Traffic;
  #turn = 0;

  constructor(traffic: Traffic) {
    this.#traffic = traffic;
  }

  /** Choose an endpoint for a client, but none of those `tried`; undefined: there is none, or the client is not to be served. */
  choose(policy: Policy, client: Client, tried: ReadonlySet<string> = NONE): Endpoint | undefined {
    const { host, affinity } = this.#traffic;
    const fate = fateOf(policy, host, client);
    if (typeof fate === "string") return undefined;
    const { row, affinitySeconds, transport } = policy.value;
    const kept = affinitySeconds === undefined ? undefined : affinity.find(row, client.ip);
    for (let skipped = tried; skipped.size < tried.size + OWN_MAX;) {
      const endpoint = choose(fate, { kept, tried: skipped, next: (count) => this.#next(count) });
      if (endpoint === undefined || !this.#traffic.isOwn(transport, endpoint)) return endpoint;
      const hint = "no connection to it is made: it would come back for ever. Its slice names an address of a Service, or of a node port";
      this.#traffic.log.warn("an endpoint is a socket of this proxy, and is left out", endpoint.text, { row, hint });
      skipped = new Set([...skipped, endpoint.text]);
    }
    return undefined;
  }

  #next(count: number): number {
    const { options, world } = this.#traffic;
    if (options.balance === "random") return Math.floor(world.random() * count);
    // Kept small: it counts connections for as long as the listener lives.
    this.#turn = (this.#turn + 1) % Number.MAX_SAFE_INTEGER;
    return (this.#turn - 1) % count;
  }
}
