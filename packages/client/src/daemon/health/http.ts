import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { ProxyError, type Clock, type Log, type World } from "@turnout/core";
import { bindAddressText, type BindAddress } from "../config/bind-address.ts";
import { boundConnections } from "./connection-bound.ts";
import type { HttpRequest, Reply } from "./health.ts";

// Not by an import: that reads all of the module's exports, and `WebSocket` is a getter that loads undici, 40 ms of CPU time and 10 MB.
const { createServer } = process.getBuiltinModule("node:http");

/** An answer of either kind. */
export type AnyReply = Reply | Reply<Uint8Array>;

/** Answers one request; `path` is without its query. */
export type Handler = (path: string, request: HttpRequest) => AnyReply | Promise<AnyReply>;

/** Limits of a small server: probes and scrapes are short, anything slow or many is not ours. */
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 15_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 8_192,
} as const;
const REBIND_MS = 5_000;
const NOT_FOUND: Reply = { status: 404, headers: { "Content-Type": "text/plain; charset=utf-8" }, body: "404 page not found\n" };

/** What keeps one server on its address. */
export interface HttpOptions {
  /** For logs, e.g. `healthz`. */
  readonly name: string;
  readonly address: BindAddress;
  readonly handler: Handler;
  /** Give up when the address can't be bound, instead of trying again every 5 s. */
  readonly hardFail: boolean;
  /** Hears, once, that the address can't be bound. */
  readonly onListenError?: ((error: ProxyError) => void) | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

function respond(request: IncomingMessage, response: ServerResponse, reply: AnyReply): void {
  response.writeHead(reply.status, { ...reply.headers, "Content-Length": Buffer.byteLength(reply.body) });
  response.end(request.method === "HEAD" ? undefined : reply.body);
}

async function answer(handler: Handler, request: IncomingMessage, response: ServerResponse, log: Log): Promise<void> {
  // Nobody sends us bodies; one that comes is thrown away rather than kept.
  request.resume();
  const [path = "/", query = ""] = (request.url ?? "/").split("?", 2);
  const { method = "GET", headers, socket } = request;
  const { accept = "", host = "" } = headers;
  const asked = { method, accept, host, remoteAddress: socket.remoteAddress ?? "", query: new URLSearchParams(query) };
  try {
    respond(request, response, await handler(path, asked));
  } catch (error) {
    log.error("a request could not be answered", { path, error });
    if (!response.headersSent) respond(request, response, { status: 500, headers: {}, body: "internal error\n" });
    else response.destroy();
  }
}

/** Serve a fixed set of paths; every other path is 404. */
export function routes(table: Readonly<Record<string, (request: HttpRequest) => AnyReply | Promise<AnyReply>>>): Handler {
  return (path, request) => (Object.hasOwn(table, path) ? (table[path]?.(request) ?? NOT_FOUND) : NOT_FOUND);
}

/**
 * Listen on one address, with limits on time, header size and connections.
 *
 * Edges: a newcomer is always taken; with too many connections the one goes that has asked for nothing for longest.
 * @throws {ProxyError} `already_exists` when the address is in use, `permission_denied`, `not_found` when it isn't this host's.
 */
export async function listen(address: BindAddress, handler: Handler, { clock, log }: Pick<World, "clock" | "log">): Promise<Server> {
  const server = createServer({ ...LIMITS }, (request, response) => void answer(handler, request, response, log));
  boundConnections(server, bindAddressText(address), clock, log);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(bindError(error, address)));
    // ipv6Only: the other family has a server of its own on the same port.
    server.listen({ host: address.ip, port: address.port, ipv6Only: address.ip.includes(":") }, resolve);
  });
  server.on("error", (error) => log.warn("a server had an error", { address: bindAddressText(address), error }));
  return server;
}

function bindError(error: NodeJS.ErrnoException, address: BindAddress): ProxyError {
  const about = (hint: string): { object: string; hint: string; cause: Error } => ({
    object: bindAddressText(address),
    hint,
    cause: error,
  });
  if (error.code === "EADDRINUSE")
    return new ProxyError("already_exists", "the address is in use", about("see who has it with ss -tlnp, or choose another"));
  if (error.code === "EACCES")
    return new ProxyError("permission_denied", "no right to listen", about("run as root, or choose a port above 1023"));
  if (error.code === "EADDRNOTAVAIL") return new ProxyError("not_found", "the address is not this host's", about("see ip address"));
  return ProxyError.from(error, "tool_failed", "can't listen", { object: bindAddressText(address) });
}

/** Stop listening and end open connections; resolves when the port is free. */
export async function closeServer(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/**
 * Serve until `signal` aborts.
 *
 * Edges: an address that can't be bound is tried again every 5 s and reported once, unless `hardFail`.
 * @throws {ProxyError} the bind error, with `hardFail` alone.
 * @source kube-proxy cmd/kube-proxy/app/server.go serveHealthz
 */
export async function serveHttp(options: HttpOptions, signal: AbortSignal): Promise<void> {
  const { name, address, handler, hardFail, onListenError, clock, log } = options;
  let isReported = false;
  while (!signal.aborted) {
    let server: Server;
    try {
      server = await listen(address, handler, { clock, log });
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      if (!isReported) onListenError?.(error);
      if (hardFail) throw error;
      if (!isReported) log.warn(`the ${name} server can't listen, trying again every 5 s`, { error });
      isReported = true;
      await clock.sleep(REBIND_MS, signal);
      continue;
    }
    log.info(`serving ${name}`, { address: bindAddressText(address) });
    if (!signal.aborted) await once(signal, "abort");
    await closeServer(server);
  }
}
