import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { ProxyError, type Clock, type Log } from "@turnout/core";
import { bindAddressText, type BindAddress } from "../config/bind-address.ts";
import type { AnyReply, HttpRequest, Reply } from "./health.ts";
import { HttpConnections } from "./http-connections.ts";

/** Answers one request; `path` is without its query. */
export type Handler = (path: string, request: HttpRequest) => AnyReply | Promise<AnyReply>;

const REBIND_MS = 5_000;
const NOT_FOUND: Reply = { status: 404, headers: { "Content-Type": "text/plain; charset=utf-8" }, body: "404 page not found\n" };

/** A server that listens. */
export interface HttpServer {
  readonly port: number;
  /** Open ones. */
  readonly connections: number;
  /** Stop listening and end open connections; resolves when the port is free. */
  close(): Promise<void>;
}

/** What keeps one server on its address. */
export interface HttpOptions {
  /** For logs, e.g. `healthz`. */
  readonly name: string;
  readonly address: BindAddress | { readonly path: string };
  readonly handler: Handler;
  /** Done before each attempt to listen. A ProxyError of it counts as one of listening. */
  readonly prepare?: (() => Promise<void>) | undefined;
  /** Give up when the address can't be bound, instead of trying again every 5 s. */
  readonly hardFail: boolean;
  /** Hears, once, that the address can't be bound. */
  readonly onListenError?: ((error: ProxyError) => void) | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Serve a fixed set of paths; every other path is 404. */
export function routes(table: Readonly<Record<string, (request: HttpRequest) => AnyReply | Promise<AnyReply>>>): Handler {
  return (path, request) => (Object.hasOwn(table, path) ? (table[path]?.(request) ?? NOT_FOUND) : NOT_FOUND);
}

/** What a server is made with. */
export interface ListenOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Shared by servers that have one budget; default: one of its own. */
  readonly connections?: HttpConnections | undefined;
}

/**
 * Listen on one address, or on a unix socket that this user alone may write to.
 *
 * Edges: each connection is answered one request, within a share of this process's time ({@link HttpConnections}).
 * @throws {ProxyError} `already_exists` when the address is in use, `permission_denied`, `not_found` when it isn't this host's.
 */
export async function listen(at: BindAddress | { readonly path: string }, handler: Handler, options: ListenOptions): Promise<HttpServer> {
  const { log, connections = new HttpConnections(options) } = options;
  const text = addressText(at);
  const sockets = new Set<Socket>();
  // A client may end its side before it is answered.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    connections.add(socket, text, ({ path, ...head }, remoteAddress) => answer(handler, path, { ...head, remoteAddress }, log));
  });
  await open(server, at, text);
  server.on("error", (error) => log.warn("a server had an error", { address: text, error }));
  const { port = 0 } = server.address() as Partial<AddressInfo>;
  return {
    port,
    get connections() {
      return sockets.size;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

const addressText = (at: BindAddress | { readonly path: string }): string => ("path" in at ? at.path : bindAddressText(at));

/** A unix socket has its mode from the moment on at which it is there. */
const OWNER_ONLY = 0o177;

async function open(server: Server, at: BindAddress | { readonly path: string }, text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(bindError(error, text)));
    // ipv6Only: the other family has a server of its own on the same port.
    if (!("path" in at)) return void server.listen({ host: at.ip, port: at.port, ipv6Only: at.ip.includes(":") }, resolve);
    const before = process.umask(OWNER_ONLY);
    server.listen(at.path, resolve);
    process.umask(before);
  });
}

async function answer(handler: Handler, path: string, request: HttpRequest, log: Log): Promise<AnyReply> {
  try {
    return await handler(path, request);
  } catch (error) {
    log.error("a request could not be answered", { path, error });
    return { status: 500, headers: {}, body: "internal error\n" };
  }
}

function bindError(error: NodeJS.ErrnoException, object: string): ProxyError {
  const about = (hint: string): { object: string; hint: string; cause: Error } => ({ object, hint, cause: error });
  if (error.code === "EADDRINUSE")
    return new ProxyError("already_exists", "the address is in use", about("see who has it with ss -tlnp, or choose another"));
  if (error.code === "EACCES")
    return new ProxyError("permission_denied", "no right to listen", about("run as root, or choose a port above 1023"));
  if (error.code === "EADDRNOTAVAIL") return new ProxyError("not_found", "the address is not this host's", about("see ip address"));
  return ProxyError.from(error, "tool_failed", "can't listen", { object });
}

/**
 * Serve until `signal` aborts.
 *
 * Edges: an address that can't be bound is tried again every 5 s and reported once, unless `hardFail`.
 * @throws {ProxyError} the bind error, with `hardFail` alone.
 * @source kube-proxy cmd/kube-proxy/app/server.go serveHealthz
 */
export async function serveHttp(options: HttpOptions, signal: AbortSignal): Promise<void> {
  const { name, address, handler, prepare, hardFail, onListenError, clock, log } = options;
  let isReported = false;
  while (!signal.aborted) {
    let server: HttpServer;
    try {
      await prepare?.();
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
    log.info(`serving ${name}`, { address: addressText(address) });
    if (!signal.aborted) await once(signal, "abort");
    await server.close();
  }
}
