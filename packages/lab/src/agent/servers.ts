import { createSocket } from "node:dgram";
import type { Socket as DatagramSocket } from "node:dgram";
import { createServer as createHttpServer } from "node:http";
import { Server as NetServer, createServer as createTcpServer } from "node:net";
import type { Socket } from "node:net";
import { ProxyError } from "@turnout/core/backend";
import { serveSctp } from "../raw/sctp-server.ts";
import { answerFor } from "./answer.ts";
import { eachLine } from "./lines.ts";
import type { ServeRequest, StopRequest } from "./protocol.ts";

/** A server that runs; `stop` does not wait for open connections. */
interface Running {
  stop(how: StopRequest["how"]): void;
}

/** The servers of one namespace. */
export interface Servers {
  serve(request: ServeRequest): Promise<void>;
  stop(request: StopRequest): Promise<void>;
}

/** Make the (empty) set of servers of this process. */
export function createServers(): Servers {
  const running = new Map<string, Running>();
  return {
    serve: async (request) => {
      const key = keyOf(request);
      if (running.has(key)) throw new ProxyError("already_exists", "server", { object: key });
      running.set(key, await START[request.transport](request));
    },
    stop: async (request) => {
      const key = keyOf(request);
      const server = running.get(key);
      if (server === undefined) throw new ProxyError("not_found", "server", { object: key });
      running.delete(key);
      server.stop(request.how);
    },
  };
}

function keyOf({ transport, port, address }: Pick<ServeRequest, "transport" | "port" | "address">): string {
  return [transport, port, address].filter((part) => part !== undefined).join(" ");
}

const START: Readonly<Record<ServeRequest["transport"], (request: ServeRequest) => Promise<Running>>> = {
  TCP: serveTcp,
  UDP: serveUdp,
  HTTP: serveHttp,
  SCTP: serveSctp,
};

/** Lines in, lines out: `once` is answered and the connection closed (by us, so that clients keep no TIME_WAIT), `ask` is answered. */
async function serveTcp(request: ServeRequest): Promise<Running> {
  const open = new Set<Socket>();
  const server = createTcpServer((socket) => {
    track(open, socket);
    const answer = `${JSON.stringify(answerFor(request.name, socket.remoteAddress ?? "", socket.remotePort ?? 0))}\n`;
    eachLine(socket, (line) => {
      if (line === "once") socket.end(answer);
      else socket.write(answer);
    });
  });
  await listening(server, request);
  return stopper(server, open);
}

async function serveHttp(request: ServeRequest): Promise<Running> {
  const open = new Set<Socket>();
  let draining = false;
  const server = createHttpServer((incoming, response) => {
    const { remoteAddress, remotePort } = incoming.socket;
    if (draining) response.setHeader("connection", "close");
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answerFor(request.name, remoteAddress ?? "", remotePort ?? 0)));
  });
  server.keepAliveTimeout = 60_000;
  server.on("connection", (socket) => track(open, socket));
  await listening(server, request);
  const plain = stopper(server, open);
  return {
    stop: (how) => {
      draining = true;
      plain.stop(how);
    },
  };
}

async function serveUdp(request: ServeRequest): Promise<Running> {
  const addresses = request.address === undefined ? ["0.0.0.0", "::"] : [request.address];
  const sockets: DatagramSocket[] = [];
  for (const address of addresses) {
    const type = address.includes(":") ? "udp6" : "udp4";
    const socket = createSocket({ type, ipv6Only: type === "udp6" });
    socket.on("message", (_, from) =>
      socket.send(JSON.stringify(answerFor(request.name, from.address, from.port)), from.port, from.address),
    );
    await new Promise<void>((resolve, reject) => socket.once("error", reject).bind(request.port, address, resolve));
    // A client that is gone may answer us with an ICMP error: its business.
    socket.removeAllListeners("error").on("error", () => undefined);
    sockets.push(socket);
  }
  return {
    stop: () => {
      for (const socket of sockets) socket.close();
    },
  };
}

function track(open: Set<Socket>, socket: Socket): void {
  open.add(socket);
  // Clients reset connections as they like; that is no failure of the server.
  socket.on("error", () => undefined).on("close", () => open.delete(socket));
}

function listening(server: NetServer, request: ServeRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen({ port: request.port, host: request.address ?? "::", backlog: 1024 }, () => resolve());
  });
}

function stopper(server: NetServer, open: ReadonlySet<Socket>): Running {
  return {
    stop: (how) => {
      // net's own close: http's would cut idle connections that a client is about to use.
      NetServer.prototype.close.call(server);
      if (how === "reset") for (const socket of open) socket.resetAndDestroy();
    },
  };
}
