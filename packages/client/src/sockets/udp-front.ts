import { hostPort } from "@turnout/core";
import type { FlowFilter } from "@turnout/core";
import type { Endpoint, Policy } from "./decide.ts";
import type { DatagramFlow, DatagramPort, SocketAddress } from "./sockets.ts";
import { Balancer } from "./traffic.ts";
import type { Traffic } from "./traffic.ts";

/** An endpoint that lost a client may still answer what it was asked before, at least for so long. */
const LATE_MS = 1_000;

/** What one client's port talks to. */
interface Session {
  readonly key: string;
  readonly front: UdpFront;
  readonly client: SocketAddress;
  readonly endpoint: Endpoint;
  /** The row that chose the endpoint. */
  readonly row: string;
  readonly flow: DatagramFlow;
  lastMs: number;
  /** Another Service gets its place. */
  end(): void;
}

/** All UDP sessions of a family, in the order of their latest datagrams. */
export class UdpSessions {
  readonly #traffic: Traffic;
  readonly #sessions = new Map<string, Session>();
  /** Forgotten, and open yet for answers that are under way. Nothing more is sent by them. */
  readonly #leaving = new Map<Session, { readonly sinceMs: number }>();

  constructor(traffic: Traffic) {
    this.#traffic = traffic;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Take a datagram of a client: to its endpoint, or, where it has none, to one that is chosen now. */
  forward(front: UdpFront, data: Uint8Array, from: SocketAddress): void {
    const key = `${front.name} ${hostPort(from.ip, from.port)}`;
    const session = this.#sessions.get(key) ?? this.#begin(key, front, from);
    if (session === undefined) return;
    this.#touch(session);
    session.flow.send(data);
  }

  /** End what was silent for too long. */
  sweep(idleMs: number): void {
    const nowMs = this.#traffic.nowMs();
    for (const [session, { sinceMs }] of this.#leaving) if (sinceMs + LATE_MS <= nowMs) this.#end(session);
    for (const session of this.#sessions.values()) {
      if (session.lastMs + idleMs > nowMs) return;
      this.#end(session);
    }
  }

  /** Part the sessions that filters name; how many. Their clients' next datagrams find other endpoints, answers under way still arrive. */
  forget(filters: readonly FlowFilter[]): number {
    let count = 0;
    for (const session of this.#sessions.values()) {
      if (!filters.some((filter) => isNamed(session, filter))) continue;
      this.#sessions.delete(session.key);
      this.#leaving.set(session, { sinceMs: this.#traffic.nowMs() });
      this.#withdraw(session);
      session.flow.part();
      count++;
    }
    return count;
  }

  /** End all sessions of a socket. */
  endAllOf(front: UdpFront): void {
    for (const session of [...this.#leaving.keys(), ...this.#sessions.values()]) if (session.front === front) this.#end(session);
  }

  #begin(key: string, front: UdpFront, client: SocketAddress): Session | undefined {
    const { affinity, world } = this.#traffic;
    const endpoint = front.chooseFor(client.ip);
    if (endpoint === undefined) return undefined;
    const { row, affinitySeconds } = front.policy.value;
    this.#makeSpace(row, front.name);
    if (affinitySeconds !== undefined) affinity.propose(row, client.ip, endpoint.text, affinitySeconds);
    const flow = world.sockets.connect(this.#traffic.placeOf(endpoint), {
      onOpen: () => {
        if (affinitySeconds !== undefined) affinity.note(row, client.ip, endpoint.text, affinitySeconds);
      },
      onDatagram: (data) => {
        if (!this.#leaving.has(session)) this.#touch(session);
        front.answer(data, client);
      },
      onFailure: (error) => {
        this.#traffic.log.warn("an endpoint refused a datagram", endpoint.text, { row, error: error.message });
        this.#end(session);
      },
    });
    const end = (): void => this.#end(session);
    const session: Session = { key, front, client, endpoint, row, flow, lastMs: this.#traffic.nowMs(), end };
    this.#traffic.seen.sessions++;
    return session;
  }

  /** Make room for one more, if there is none: one that is leaving goes, or else, of the Service that has most, the one that was silent longest. */
  #makeSpace(row: string, name: string): void {
    const { shared, options, log } = this.#traffic;
    const giver = shared.sessions.giverFor(row);
    if (giver === undefined) return;
    const [leaving] = this.#leaving.keys();
    if (leaving !== undefined) return this.#end(leaving);
    log.warn("a UDP session was ended early: the limit is reached", name, { limit: `max-udp-sessions=${options.maxUdpSessions}` });
    const [oldest] = giver.held;
    oldest?.end();
  }

  #touch(session: Session): void {
    session.lastMs = this.#traffic.nowMs();
    this.#sessions.delete(session.key);
    this.#sessions.set(session.key, session);
    this.#traffic.shared.sessions.add(session.row, session);
  }

  #end(session: Session): void {
    // By now its client may have another, under the same key.
    if (!this.#leaving.delete(session) && !this.#sessions.delete(session.key)) return;
    this.#traffic.shared.sessions.delete(session.row, session);
    this.#withdraw(session);
    session.flow.close();
  }

  /** Of no effect once the socket was open. */
  #withdraw({ row, client, endpoint }: Session): void {
    this.#traffic.affinity.withdraw(row, client.ip, endpoint.text);
  }
}

function isNamed({ front, endpoint }: Session, { address, port, keep, only }: FlowFilter): boolean {
  const { asked } = front.policy.value;
  if (asked.address !== address || asked.port !== port || keep.includes(endpoint.text)) return false;
  return only === undefined || only.includes(endpoint.text);
}

/** One UDP address and port that clients are answered on. */
export class UdpFront {
  readonly name: string;
  readonly at: SocketAddress;
  readonly #sessions: UdpSessions;
  readonly #balancer: Balancer;
  readonly #port: DatagramPort;
  #policy: Policy;

  /** @param onLost told when the socket fails after it was opened */
  constructor(at: SocketAddress, policy: Policy, traffic: Traffic, sessions: UdpSessions, onLost: (error: Error) => void) {
    this.name = `UDP ${hostPort(at.ip, at.port)}`;
    this.at = at;
    this.#policy = policy;
    this.#sessions = sessions;
    this.#balancer = new Balancer(traffic);
    this.#port = traffic.world.sockets.bind(at, (data, from) => this.#sessions.forward(this, data, from), onLost);
  }

  /** Resolves when clients are answered. @throws {Error} why they can't be, with the system's `code` */
  get opened(): Promise<void> {
    return this.#open();
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** Nothing goes on when it is closed: sessions end with it. */
  get size(): number {
    return 0;
  }

  /** Decide by this from now on; sessions stay until {@link UdpSessions.forget} names them. */
  async setPolicy(policy: Policy): Promise<void> {
    const wasRefusing = this.#policy.refusesAll;
    this.#policy = policy;
    if (wasRefusing === policy.refusesAll) return;
    // A socket that refuses can't answer anybody.
    if (policy.refusesAll) this.#sessions.endAllOf(this);
    await this.#port.setRefusing(policy.refusesAll);
  }

  close(): void {
    this.#sessions.endAllOf(this);
    this.#port.close();
  }

  /** There is nothing to wait for, so nothing to cut. */
  cut(): void {
    this.#sessions.endAllOf(this);
  }

  /** An endpoint for a client; undefined: there is none. */
  chooseFor(clientIp: string): Endpoint | undefined {
    return this.#balancer.choose(this.#policy, { ip: clientIp, askedIp: this.at.ip });
  }

  /** Send an endpoint's answer to its client. */
  answer(data: Uint8Array, client: SocketAddress): void {
    this.#port.send(data, client);
  }

  async #open(): Promise<void> {
    await this.#port.opened;
    if (this.#policy.refusesAll) await this.#port.setRefusing(true);
  }
}
