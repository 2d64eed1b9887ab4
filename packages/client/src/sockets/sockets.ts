import type { Clock, Log } from "@turnout/core";

/** One end of a socket; canonical address. */
export interface SocketAddress {
  readonly ip: string;
  readonly port: number;
}

/** A socket that listens, or tries to. */
export interface Listening {
  /** Resolves when clients are answered. @throws {Error} why they can't be, with the system's `code` */
  readonly opened: Promise<void>;
  /** Answer no more clients; those that were accepted stay. */
  close(): void;
}

/** A client's connection; nothing is read from it before it is joined. */
export interface ClientStream {
  readonly client: SocketAddress;
  /** Where it asked. */
  readonly asked: SocketAddress;
  /** Have this called once when it is over before it was joined. */
  onClosed(listener: () => void): void;
  /** End it so that the client is told at once (RST). */
  reset(): void;
}

/** A connection to an endpoint, or the attempt at one. */
export interface EndpointStream {
  /** Give it up. */
  abort(): void;
}

/** What becomes of a dial: exactly one of them is called, and none after {@link EndpointStream.abort}. */
export interface DialEvents {
  onOpen(): void;
  onFailure(error: Error): void;
}

/** How two streams are joined. */
export interface JoinOptions {
  /** Written to the endpoint first. */
  readonly head: Uint8Array | undefined;
  /** Both are closed when nothing moved for this long; 0: never. */
  readonly idleMs: number;
  /** Called once, when both are over. */
  onOver(): void;
}

/** Two streams that are one connection. */
export interface Joined {
  /** Cut it: both sides are reset. */
  reset(): void;
}

/** A UDP socket that clients send to. */
export interface DatagramPort extends Listening {
  send(data: Uint8Array, to: SocketAddress): void;
  /** From now on the host refuses whatever comes (ICMP port unreachable), and the port stays ours; or no longer. */
  setRefusing(isRefusing: boolean): Promise<void>;
}

/** Hears a {@link DatagramFlow}, never before {@link Sockets.connect} returned. */
export interface DatagramEvents {
  /** The socket is open: the system accepted the endpoint. */
  onOpen(): void;
  onDatagram(data: Uint8Array): void;
  /** The endpoint refused, or the socket failed; nothing more comes. Not called after {@link DatagramFlow.close}. */
  onFailure(error: Error): void;
}

/** A UDP socket that is connected to one endpoint. */
export interface DatagramFlow {
  /** Edges: what is sent before the socket is open is kept for it, a few datagrams at most. */
  send(data: Uint8Array): void;
  /** Nothing more is to be sent to the endpoint; what it answers yet is heard, until it is closed. */
  part(): void;
  close(): void;
}

/** All that is done with sockets. */
export interface Sockets {
  listen(at: SocketAddress, onClient: (stream: ClientStream) => void, onFailure: (error: Error) => void): Listening;
  dial(to: SocketAddress, timeoutMs: number, events: DialEvents): EndpointStream;
  /** Carry bytes both ways, with half-closes, back-pressure and resets, until both are over. */
  join(client: ClientStream, endpoint: EndpointStream, options: JoinOptions): Joined;
  bind(at: SocketAddress, onDatagram: (data: Uint8Array, from: SocketAddress) => void, onFailure: (error: Error) => void): DatagramPort;
  connect(to: SocketAddress, events: DatagramEvents): DatagramFlow;
}

/** What the parts that carry traffic work with. */
export interface TrafficWorld {
  readonly sockets: Sockets;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly clock: Clock;
}
