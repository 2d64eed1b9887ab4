import type { Socket } from "node:net";
import type { Clock, Issue } from "@turnout/core";

/** What a connection gate needs. */
export interface ConnectionGateOptions {
  readonly clock: Clock;
  /** Is told of clients that want more than there is. */
  readonly report: (issue: Issue) => void;
}

/** Whose a connection is, and how many it may have. */
export interface ConnectionShare {
  /** In words for a log; the same for all connections of one certificate. */
  readonly client: string;
  readonly connectionsMax: number;
}

/** Handshakes of one address that are under way, and connections of it that wait for theirs. */
export const HANDSHAKES_MAX = 128;
/** Of all addresses together. */
const HANDSHAKES_OF_ALL_MAX = 2_048;
/** A handshake that takes longer makes room for one that waits. */
export const PATIENCE_MS = 1_000;
/** Handshakes of one address that may fail within {@link FAILURES_MS}; further ones wait. */
const FAILURES_MAX = 16;
const FAILURES_MS = 1_000;
/** Streams of one client that may be refused within {@link REFUSED_MS} before its connections are closed. */
export const REFUSED_STREAMS_MAX = 100;
const REFUSED_MS = 10_000;
/** Names whose failures are remembered. */
const NAMES_MAX = 10_000;
const POLL_MS = 100;

/** What failed lately, by name. */
class Failures {
  readonly #windowMs: number;
  readonly #nowMs: () => number;
  /** In the order of their last failures. */
  readonly #times = new Map<string, readonly number[]>();

  constructor(windowMs: number, nowMs: () => number) {
    this.#windowMs = windowMs;
    this.#nowMs = nowMs;
  }

  of(name: string): number {
    return this.#recent(name).length;
  }

  note(name: string): void {
    const times = this.#recent(name);
    this.#times.delete(name);
    this.#times.set(name, [...times, this.#nowMs()]);
    const [first] = this.#times.keys();
    if (first !== undefined && this.#times.size > NAMES_MAX) this.#times.delete(first);
  }

  #recent(name: string): readonly number[] {
    const sinceMs = this.#nowMs() - this.#windowMs;
    return (this.#times.get(name) ?? []).filter((atMs) => atMs > sinceMs);
  }
}

/** A connection whose handshake is under way, or waits. */
interface Handshake {
  readonly id: string;
  readonly socket: Socket;
  readonly address: string;
  readonly begin: () => void;
  startedMs: number;
}

/** Handshakes of one address, the oldest first. */
interface OfAddress {
  readonly underWay: Set<Handshake>;
  readonly waiting: Set<Handshake>;
}

/**
 * Bounds TLS connections: by address until the handshake is done, then by certificate.
 *
 * Shape: a handshake costs time of the processor. So an address of which many fail, or take long, has its next ones wait, and those beyond the bound are
 * refused before TLS. One that ends well counts no longer: thousands of nodes may come from one address, a few at a time.
 * Edges: IPv6 addresses are counted one by one, as IPv4 ones: nodes often share a /64. A client whose streams are refused again and again loses its connections.
 */
export class ConnectionGate {
  readonly #clock: Clock;
  readonly #report: (issue: Issue) => void;
  /** By the client's address and port, oldest first. */
  readonly #handshakes = new Map<string, Handshake>();
  readonly #addresses = new Map<string, OfAddress>();
  readonly #failedHandshakes: Failures;
  readonly #refusedStreams: Failures;
  readonly #clients = new Map<string, Set<Socket>>();
  readonly #closed = new AbortController();
  #isPolling = false;

  constructor({ clock, report }: ConnectionGateOptions) {
    const nowMs = (): number => clock.nowMs();
    this.#clock = clock;
    this.#report = report;
    this.#failedHandshakes = new Failures(FAILURES_MS, nowMs);
    this.#refusedStreams = new Failures(REFUSED_MS, nowMs);
  }

  /** Take in a connection: its handshake begins now or later, or it is refused. */
  arrive(socket: Socket, begin: () => void): void {
    const address = addressOf(socket);
    const ofAddress = this.#addresses.get(address) ?? { underWay: new Set(), waiting: new Set() };
    if (ofAddress.waiting.size >= HANDSHAKES_MAX) {
      const what = "TLS connections are refused before their handshake: too many from one address have failed, or are under way";
      this.#report({ object: `clients at ${address}`, what, hint: "see who they are with ss -tn, and keep them away from the port" });
      socket.resetAndDestroy();
      return;
    }
    const [oldest] = this.#handshakes.values();
    if (oldest !== undefined && this.#handshakes.size >= HANDSHAKES_OF_ALL_MAX) this.#giveUp(oldest);
    const handshake = { id: idOf(socket), socket, address, begin, startedMs: this.#clock.nowMs() };
    this.#handshakes.set(handshake.id, handshake);
    this.#addresses.set(address, ofAddress);
    ofAddress.waiting.add(handshake);
    // One that was admitted is none any more.
    socket.once("close", () => {
      this.#giveUp(handshake);
      this.#advance(ofAddress);
    });
    this.#advance(ofAddress);
    if (ofAddress.waiting.size > 0 && !this.#isPolling) void this.#poll();
  }

  /** Whether a connection whose handshake is done may stay; it is closed otherwise. */
  admit(socket: Socket, { client, connectionsMax: most }: ConnectionShare): boolean {
    const sockets = this.#clients.get(client) ?? new Set();
    if (sockets.size >= most) {
      const hint = "close the others; serve --streams-per-client allows more";
      this.#report({ object: client, what: `more connections than one certificate may have are refused: it has ${most}`, hint });
      // Not the socket below it: Node crashes when that is destroyed in the middle of TLS (seen on Node 24).
      socket.destroy();
      return false;
    }
    const handshake = this.#handshakes.get(idOf(socket));
    if (handshake !== undefined) this.#remove(handshake);
    const ofAddress = this.#addresses.get(addressOf(socket));
    if (ofAddress !== undefined) this.#advance(ofAddress);
    sockets.add(socket);
    this.#clients.set(client, sockets);
    socket.once("close", () => {
      sockets.delete(socket);
      if (sockets.size === 0 && this.#clients.get(client) === sockets) this.#clients.delete(client);
    });
    return true;
  }

  /** Note that a stream of a client was refused: a client that asks again and again loses its connections, which count as failed handshakes. */
  streamRefused(client: string): void {
    this.#refusedStreams.note(client);
    if (this.#refusedStreams.of(client) < REFUSED_STREAMS_MAX) return;
    const sockets = this.#clients.get(client) ?? [];
    this.#clients.delete(client);
    for (const socket of sockets) {
      this.#failedHandshakes.note(addressOf(socket));
      socket.destroy();
    }
  }

  /** Begin no more handshakes. */
  close(): void {
    this.#closed.abort();
  }

  /** Begin the handshakes that may be under way. */
  #advance({ underWay, waiting }: OfAddress): void {
    for (const next of waiting) {
      if (this.#failedHandshakes.of(next.address) >= FAILURES_MAX) return;
      const [oldest] = underWay;
      if (oldest !== undefined && underWay.size >= HANDSHAKES_MAX) {
        if (this.#clock.nowMs() - oldest.startedMs < PATIENCE_MS) return;
        this.#giveUp(oldest);
      }
      waiting.delete(next);
      underWay.add(next);
      next.startedMs = this.#clock.nowMs();
      next.begin();
    }
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    do {
      await this.#clock.sleep(POLL_MS, this.#closed.signal);
      for (const ofAddress of this.#addresses.values()) this.#advance(ofAddress);
    } while (!this.#closed.signal.aborted && [...this.#addresses.values()].some(({ waiting }) => waiting.size > 0));
    this.#isPolling = false;
  }

  /** A handshake came to nothing; of no effect once it was done. */
  #giveUp(handshake: Handshake): void {
    if (!this.#remove(handshake)) return;
    this.#failedHandshakes.note(handshake.address);
    handshake.socket.destroy();
  }

  /** It is none any more; says whether it was one. */
  #remove(handshake: Handshake): boolean {
    const { id, address } = handshake;
    const ofAddress = this.#addresses.get(address);
    if (ofAddress === undefined || !(ofAddress.underWay.delete(handshake) || ofAddress.waiting.delete(handshake))) return false;
    if (this.#handshakes.get(id) === handshake) this.#handshakes.delete(id);
    if (ofAddress.underWay.size === 0 && ofAddress.waiting.size === 0) this.#addresses.delete(address);
    return true;
  }
}

function addressOf({ remoteAddress = "" }: Socket): string {
  return remoteAddress;
}

function idOf({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
