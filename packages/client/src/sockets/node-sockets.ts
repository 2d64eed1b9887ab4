import { createSocket } from "node:dgram";
import type { Socket as UdpSocket } from "node:dgram";
import { connect, createServer } from "node:net";
import type { Socket } from "node:net";
import { canonicalIP } from "@turnout/core";
import type {
  ClientStream,
  DatagramEvents,
  DatagramFlow,
  DatagramPort,
  DialEvents,
  EndpointStream,
  Joined,
  JoinOptions,
  Listening,
  SocketAddress,
  Sockets,
} from "./sockets.ts";

/** Connections the kernel keeps for us while we are busy. */
const BACKLOG = 4_096;
/** A peer that is gone without a word is noticed by these, after a few minutes. */
const KEEP_ALIVE_MS = 60_000;
/** Datagrams kept for an endpoint while its socket is being opened. */
const WAITING_MAX = 64;

/** Make the real {@link Sockets}, on node:net and node:dgram. */
export function createNodeSockets(): Sockets {
  return { listen, dial, join, bind, connect: connectDatagrams };
}

/** A stream with the socket under it; the only ones {@link join} is given are made here. */
class NodeClient implements ClientStream {
  readonly socket: Socket;
  readonly client: SocketAddress;
  readonly asked: SocketAddress;

  constructor(socket: Socket, client: SocketAddress, asked: SocketAddress) {
    this.socket = socket;
    this.client = client;
    this.asked = asked;
  }

  onClosed(listener: () => void): void {
    this.socket.once("close", listener);
  }

  reset(): void {
    this.socket.resetAndDestroy();
  }
}

class NodeEndpoint implements EndpointStream {
  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  abort(): void {
    this.socket.removeAllListeners("connect").removeAllListeners("timeout").removeAllListeners("error").on("error", ignore);
    this.socket.destroy();
  }
}

/** What a socket complains about is told by its end. */
function ignore(): void {
  return undefined;
}

/** An address as the system writes it: link-local ones with their link. */
function canonical(address: string | undefined): string {
  return canonicalIP((address ?? "").replace(/%.*$/, ""))?.text ?? "";
}

function listen(at: SocketAddress, onClient: (stream: ClientStream) => void, onFailure: (error: Error) => void): Listening {
  const server = createServer({
    allowHalfOpen: true,
    pauseOnConnect: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
  const { promise: opened, resolve, reject } = Promise.withResolvers<void>();
  server.once("listening", () => {
    server.off("error", reject).on("error", onFailure);
    resolve();
  });
  server.once("error", reject);
  server.on("connection", (socket) => {
    socket.on("error", ignore);
    const { remoteAddress, remotePort, localAddress, localPort } = socket;
    // It left again before we could look at it.
    if (remoteAddress === undefined || remotePort === undefined) return void socket.destroy();
    const asked = { ip: canonical(localAddress ?? at.ip), port: localPort ?? at.port };
    onClient(new NodeClient(socket, { ip: canonical(remoteAddress), port: remotePort }, asked));
  });
  server.listen({ host: at.ip, port: at.port, backlog: BACKLOG, ipv6Only: true });
  return {
    opened,
    close: () => {
      server.off("error", onFailure).on("error", ignore);
      if (server.listening) server.close();
    },
  };
}

function dial(to: SocketAddress, timeoutMs: number, events: DialEvents): EndpointStream {
  const socket = connect({
    host: to.ip,
    port: to.port,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
  const stream = new NodeEndpoint(socket);
  const fail = (error: Error): void => {
    stream.abort();
    events.onFailure(error);
  };
  socket.setTimeout(timeoutMs);
  socket.once("timeout", () => fail(new Error(`no answer within ${timeoutMs} ms`)));
  socket.once("error", fail);
  socket.once("connect", () => {
    socket.removeAllListeners("timeout").removeAllListeners("error").on("error", ignore).setTimeout(0);
    events.onOpen();
  });
  return stream;
}

function join(clientStream: ClientStream, endpointStream: EndpointStream, { head, idleMs, onOver }: JoinOptions): Joined {
  const client = (clientStream as NodeClient).socket;
  const endpoint = (endpointStream as NodeEndpoint).socket;
  const reset = (): void => {
    client.resetAndDestroy();
    endpoint.resetAndDestroy();
  };
  let open = 2;
  const follow = (socket: Socket, other: Socket): void => {
    socket.once("close", (hadError) => {
      open--;
      // What ended well on this side has told the other by its FIN.
      if (hadError || !socket.readableEnded || !socket.writableFinished) other.resetAndDestroy();
      if (open === 0) onOver();
    });
  };
  follow(client, endpoint);
  follow(endpoint, client);
  // Whatever moves, moves through the client's socket.
  if (idleMs > 0) client.setTimeout(idleMs, reset);
  if (head !== undefined) endpoint.write(head);
  client.pipe(endpoint);
  endpoint.pipe(client);
  // It may have gone while the endpoint was dialled.
  if (client.destroyed || endpoint.destroyed) reset();
  return { reset };
}

function bind(
  at: SocketAddress,
  onDatagram: (data: Uint8Array, from: SocketAddress) => void,
  onFailure: (error: Error) => void,
): DatagramPort {
  const open = async (): Promise<UdpSocket> => {
    const socket = udpSocket(at.ip);
    const { promise: bound, resolve, reject } = Promise.withResolvers<void>();
    socket.once("error", reject);
    socket.on("message", (data, { address, port }) => onDatagram(data, { ip: canonical(address), port }));
    socket.bind({ address: at.ip, port: at.port, exclusive: true }, () => resolve());
    try {
      await bound;
    } catch (error) {
      socket.close();
      throw error;
    }
    socket.off("error", reject).on("error", onFailure);
    return socket;
  };
  let socket: UdpSocket | undefined;
  let isClosed = false;
  const take = (opened: UdpSocket): void => {
    if (isClosed) opened.close();
    else socket = opened;
  };
  const close = (): void => {
    socket?.close();
    socket = undefined;
  };
  return {
    opened: open().then(take),
    close: () => {
      isClosed = true;
      close();
    },
    // What can't be sent is lost, as datagrams may be. Port 0 is a sender that wants no answer (RFC 768), and Node throws when told to send there.
    send: (data, to) => (to.port === 0 ? undefined : socket?.send(data, to.port, to.ip, ignore)),
    setRefusing: async (isRefusing) => {
      if (isClosed) return;
      if (isRefusing) {
        // A socket that is connected to itself is nobody else's: the kernel refuses what others send, and nobody can take the port.
        await new Promise<void>((done, fail) => socket?.connect(at.port, at.ip, (error?: Error) => (error ? fail(error) : done())));
        return;
      }
      // Another socket: one of IPv6 goes on taking datagrams from its peer alone when it is disconnected (seen on Linux 6.18).
      close();
      take(await open());
    },
  };
}

function connectDatagrams(to: SocketAddress, events: DatagramEvents): DatagramFlow {
  const socket = udpSocket(to.ip);
  let waiting: Uint8Array[] | undefined = [];
  let isParted = false;
  let isClosed = false;
  // Node tells of some failures (too many open files) before its call returns: then our caller doesn't know the flow yet.
  const fail = (error: Error): void =>
    queueMicrotask(() => {
      if (!isClosed) events.onFailure(error);
    });
  socket.on("error", fail);
  socket.on("message", (data) => events.onDatagram(data));
  socket.connect(to.port, to.ip, (error?: Error) => {
    if (isClosed) return;
    if (error) return fail(error);
    events.onOpen();
    for (const data of waiting ?? []) socket.send(data, ignore);
    waiting = undefined;
  });
  return {
    send: (data) => {
      if (isClosed || isParted) return;
      if (waiting === undefined) socket.send(data, ignore);
      else if (waiting.length < WAITING_MAX) waiting.push(data);
    },
    part: () => {
      isParted = true;
    },
    close: () => {
      if (isClosed) return;
      isClosed = true;
      socket.close();
    },
  };
}

/** Addresses are never names: nothing is looked up. */
function udpSocket(ip: string): UdpSocket {
  const isIPv6 = ip.includes(":");
  return createSocket({
    type: isIPv6 ? "udp6" : "udp4",
    ...(isIPv6 ? { ipv6Only: true } : {}),
    lookup: (address, _options, callback) => callback(null, address, isIPv6 ? 6 : 4),
  });
}
