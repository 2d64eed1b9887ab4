import { hostPort } from "@turnout/core";
import type { Client, Endpoint, Policy } from "./decide.ts";
import { proxyHeader } from "./proxy-protocol.ts";
import type { ClientStream, EndpointStream, Joined, Listening, SocketAddress } from "./sockets.ts";
import { Balancer } from "./traffic.ts";
import type { Traffic } from "./traffic.ts";

/** So many endpoints are dialled for one client; when none of them answers the others hardly will. */
const DIALS_MAX = 8;
const NONE: ReadonlySet<string> = new Set();

/** One TCP address and port that clients are answered on, and their connections. */
export class TcpFront {
  readonly name: string;
  readonly #traffic: Traffic;
  readonly #balancer: Balancer;
  readonly #connections = new Set<Connection>();
  readonly #listening: Listening;
  #policy: Policy;
  #isClosed = false;

  /** @param onLost told when the socket fails after it was opened */
  constructor(at: SocketAddress, policy: Policy, traffic: Traffic, onLost: (error: Error) => void) {
    this.name = `TCP ${hostPort(at.ip, at.port)}`;
    this.#policy = policy;
    this.#traffic = traffic;
    this.#balancer = new Balancer(traffic);
    this.#listening = traffic.world.sockets.listen(at, (stream) => this.#accept(stream), onLost);
  }

  /** Resolves when clients are answered. @throws {Error} why they can't be, with the system's `code` */
  get opened(): Promise<void> {
    return this.#listening.opened;
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** Connections that are open or being opened. */
  get size(): number {
    return this.#connections.size;
  }

  /** Decide by this from now on. Connections to endpoints it doesn't have go on until they end, or their time is over. */
  setPolicy(policy: Policy): Promise<void> {
    this.#policy = policy;
    const { drainSeconds } = this.#traffic.options;
    if (drainSeconds > 0)
      for (const one of this.#connections) one.setLeaving(one.endpoint !== undefined && !policy.endpoints.has(one.endpoint));
    return Promise.resolve();
  }

  /** Answer no more clients. Connections go on. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#listening.close();
    for (const one of this.#connections) one.setLeaving(true);
  }

  /** Cut the connections whose time is over: those that have been leaving since `beforeMs`. */
  cut(beforeMs: number): void {
    for (const one of this.#connections) if (one.leavingSinceMs !== undefined && one.leavingSinceMs <= beforeMs) one.reset();
  }

  /** An endpoint for a client; undefined: there is none left. */
  chooseFor(client: Client, tried: ReadonlySet<string>): Endpoint | undefined {
    return this.#balancer.choose(this.#policy, client, tried);
  }

  #accept(stream: ClientStream): void {
    const { options, shared, log } = this.#traffic;
    const giver = shared.connections.giverFor(this.#policy.value.row);
    const limit =
      giver?.isOwn === true
        ? "max-connections"
        : this.size >= options.maxConnectionsPerListener
          ? "max-connections-per-listener"
          : undefined;
    if (limit !== undefined) {
      this.#traffic.seen.refused++;
      log.warn("a connection was refused: the limit is reached", this.name, {
        limit: `${limit}=${limit === "max-connections" ? options.maxConnections : options.maxConnectionsPerListener}`,
      });
      stream.reset();
      return;
    }
    if (giver !== undefined) {
      this.#traffic.seen.refused++;
      log.warn("a connection was reset: the limit is reached, and others have less", this.name, {
        limit: `max-connections=${options.maxConnections}`,
      });
      // The newest: as if it had been refused.
      [...giver.held].at(-1)?.end();
    }
    const { row } = this.#policy.value;
    const connection = new Connection(stream, this, this.#traffic, () => {
      shared.connections.delete(row, connection);
      this.#connections.delete(connection);
    });
    shared.connections.add(row, connection);
    this.#traffic.seen.connections++;
    this.#connections.add(connection);
    connection.start();
  }
}

/** One client's connection: an endpoint is found for it, then bytes are carried until both sides are over. */
class Connection {
  /** `ip:port` once connected. */
  endpoint: string | undefined;
  /** Since when its endpoint or its listener is gone. */
  leavingSinceMs: number | undefined;
  readonly #stream: ClientStream;
  readonly #front: TcpFront;
  readonly #traffic: Traffic;
  readonly #onOver: () => void;
  #tried: ReadonlySet<string> = NONE;
  #dialled: EndpointStream | undefined;
  #joined: Joined | undefined;
  #proposed: { readonly row: string; readonly endpoint: string } | undefined;
  #isOver = false;

  constructor(stream: ClientStream, front: TcpFront, traffic: Traffic, onOver: () => void) {
    this.#stream = stream;
    this.#front = front;
    this.#traffic = traffic;
    this.#onOver = onOver;
  }

  start(): void {
    this.#stream.onClosed(() => {
      this.#dialled?.abort();
      this.#over();
    });
    this.#dial();
  }

  setLeaving(isLeaving: boolean): void {
    this.leavingSinceMs = isLeaving ? (this.leavingSinceMs ?? this.#traffic.nowMs()) : undefined;
  }

  /** Another Service gets its place, at once: sockets say that they are closed after others have been accepted. */
  end(): void {
    this.reset();
    this.#over();
  }

  reset(): void {
    if (this.#isOver) return;
    if (this.#joined !== undefined) {
      this.#joined.reset();
      return;
    }
    this.#dialled?.abort();
    this.#stream.reset();
    this.#over();
  }

  /** Dial an endpoint; nothing was read from the client yet, so nothing is lost when it doesn't answer. */
  #dial(): void {
    const { client, asked } = this.#stream;
    const { options, world } = this.#traffic;
    const endpoint = this.#tried.size >= DIALS_MAX ? undefined : this.#front.chooseFor({ ip: client.ip, askedIp: asked.ip }, this.#tried);
    if (endpoint === undefined) {
      this.reset();
      return;
    }
    this.#propose(endpoint.text);
    this.#dialled = world.sockets.dial(this.#traffic.placeOf(endpoint), options.dialSeconds * 1000, {
      onOpen: () => this.#open(endpoint),
      onFailure: (error) => {
        this.#traffic.seen.failedDials++;
        this.#traffic.log.warn("an endpoint can't be reached", endpoint.text, { row: this.#front.policy.value.row, error: error.message });
        this.#tried = new Set([...this.#tried, endpoint.text]);
        this.#dialled = undefined;
        this.#withdraw();
        this.#dial();
      },
    });
  }

  #open(endpoint: Endpoint): void {
    const { client, asked } = this.#stream;
    const { options, affinity, world } = this.#traffic;
    const { row, affinitySeconds, proxyProtocol } = this.#front.policy.value;
    if (this.#dialled === undefined) return;
    this.endpoint = endpoint.text;
    // It may have gone while it was dialled.
    if (!this.#front.policy.endpoints.has(endpoint.text)) this.setLeaving(true);
    this.#proposed = undefined;
    if (affinitySeconds !== undefined) affinity.note(row, client.ip, endpoint.text, affinitySeconds);
    this.#joined = world.sockets.join(this.#stream, this.#dialled, {
      head: proxyProtocol === undefined ? undefined : proxyHeader(proxyProtocol, client, asked),
      idleMs: options.tcpIdleSeconds * 1000,
      onOver: () => this.#over(),
    });
  }

  /** Others of this client that come while the endpoint is dialled are to go there too. */
  #propose(endpoint: string): void {
    const { row, affinitySeconds } = this.#front.policy.value;
    if (affinitySeconds === undefined) return;
    this.#proposed = { row, endpoint };
    this.#traffic.affinity.propose(row, this.#stream.client.ip, endpoint, affinitySeconds);
  }

  #withdraw(): void {
    if (this.#proposed !== undefined) this.#traffic.affinity.withdraw(this.#proposed.row, this.#stream.client.ip, this.#proposed.endpoint);
    this.#proposed = undefined;
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#withdraw();
    this.#onOver();
  }
}
