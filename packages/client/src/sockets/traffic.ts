import type { IPFamily, Log } from "@turnout/core";
import { AffinityTable } from "./affinity.ts";
import { choose, fateOf } from "./decide.ts";
import type { Client, Endpoint, HostView, Policy } from "./decide.ts";
import type { TrafficWorld } from "./sockets.ts";

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
  /** TCP connections of all that share {@link Counters}, and of one listener. */
  readonly maxConnections: number;
  readonly maxConnectionsPerListener: number;
  readonly maxUdpSessions: number;
}

/** What both families share: limits concern the process. */
export interface Counters {
  connections: number;
  sessions: number;
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
  readonly counters: Counters;
  readonly affinity: AffinityTable;
  readonly log: QuietLog;
  readonly seen: Seen = { connections: 0, sessions: 0, refused: 0, failedDials: 0 };
  /** How clients are told apart; nobody is anything before it is known. */
  host: HostView = { addresses: new Set(), pods: [] };

  constructor(family: IPFamily, world: TrafficWorld, options: TrafficOptions, counters: Counters) {
    this.family = family;
    this.world = world;
    this.options = options;
    this.counters = counters;
    const nowMs = (): number => world.clock.nowMs();
    this.affinity = new AffinityTable(nowMs);
    this.log = new QuietLog(world.log, nowMs);
  }

  nowMs(): number {
    return this.world.clock.nowMs();
  }
}

const NONE: ReadonlySet<string> = new Set();

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
    const { row, affinitySeconds } = policy.value;
    const kept = affinitySeconds === undefined ? undefined : affinity.find(row, client.ip);
    return choose(fate, { kept, tried, next: (count) => this.#next(count) });
  }

  #next(count: number): number {
    const { options, world } = this.#traffic;
    if (options.balance === "random") return Math.floor(world.random() * count);
    // Kept small: it counts connections for as long as the listener lives.
    this.#turn = (this.#turn + 1) % Number.MAX_SAFE_INTEGER;
    return (this.#turn - 1) % count;
  }
}
