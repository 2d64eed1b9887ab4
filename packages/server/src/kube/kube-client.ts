import type { Agent, ClientRequest, IncomingMessage } from "node:http";
import { lookup } from "node:dns";
import https from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { RestClientMetrics } from "@turnout/client/daemon";
import { canonicalIP, type Clock, ProxyError, wallMs } from "@turnout/core";
import { errnoOf } from "../source/cached-file.ts";
import { AccessMeter } from "./access/access-meter.ts";
import type { KubeAccess, KubeEndpoint, TlsMaterial } from "./access/kube-access.ts";
import { createAgent, isForwarded } from "./access/proxied-agent.ts";
import { bareHost, portOf, proxyFromEnvironment, type Environment } from "./access/proxy-rules.ts";
import { proxyAuthorization } from "./access/proxy-tunnel.ts";
import { HTTP, parseRefusal, type Refusal } from "./refusal.ts";
import { RequestMeter } from "./request-meter.ts";
import { Watchdog } from "./watchdog.ts";

// Not by an import: that reads all of the module's exports, and `WebSocket` is a getter that loads undici, 40 ms of CPU time and 10 MB.
const http = process.getBuiltinModule("node:http");

/** A body under way. */
export interface OpenResponse {
  readonly kind: "open";
  /** Chunks until the proper end; a broken connection or an idle limit throws {@link ProxyError} `feed_lost` or `timed_out`. */
  readonly chunks: AsyncIterable<Buffer>;
}

/** The API server was not asked: no connection came about, or it can't be told how to make one. */
export interface Unreached {
  readonly kind: "unreached";
  readonly error: ProxyError;
}

/** One request. */
export interface KubeRequest {
  /** Path and query. */
  readonly path: string;
  /** Posted as JSON; undefined: this is a GET. */
  readonly body?: object;
  /** Bounds the silence within the answer's body. */
  readonly idleMs: number;
  readonly isWatch?: boolean;
}

/** The way to ask an API server. */
export interface KubeClient {
  /**
   * Send one request.
   *
   * Edges: any status but 200 and 201 is a refusal, not an error.
   * @throws {ProxyError} `feed_lost` or `timed_out` once a connection was there, `canceled` on abort, `tool_failed` of a login program.
   */
  ask(request: KubeRequest, signal: AbortSignal): Promise<OpenResponse | Refusal | Unreached>;
  /** Another text when what is known of the server's address or our credentials changed on disk. */
  accessStamp(): string;
  /** The server didn't accept the credentials: read them anew for the next request. */
  refreshCredentials(): void;
  /** Cut idle connections; requests under way end by their signals. */
  close(): void;
}

/** What a client needs. */
export interface KubeClientOptions {
  readonly access: KubeAccess;
  readonly clock: Clock;
  /** From the request to a connection, TLS included. */
  readonly connectTimeoutMs: number;
  /** From a connection to the first byte of the answer. */
  readonly answerTimeoutMs: number;
  /** Proxy variables are read from here. */
  readonly env: Environment;
  /** Hears of each request. */
  readonly metrics?: RestClientMetrics | undefined;
  /** Hears, before it is connected to, each `address port` that the server, or the proxy to it, may be reached at. */
  readonly onAddresses?: ((addresses: readonly string[]) => void) | undefined;
}

const REFUSAL_BYTES_MAX = 64 * 1024;

/** Make a client with one keep-alive agent; it is replaced when TLS material changes. Connects at the first request. */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  return new HttpKubeClient(options);
}

class HttpKubeClient implements KubeClient {
  readonly #options: KubeClientOptions;
  readonly #accessMeter: AccessMeter;
  #agent: Agent | undefined;
  #agentKey: readonly unknown[] = [];
  /** What is connected to next: the server, or the proxy to it. */
  #next: URL | undefined;

  constructor(options: KubeClientOptions) {
    this.#options = options;
    this.#accessMeter = new AccessMeter(options.metrics);
  }

  async ask(request: KubeRequest, signal: AbortSignal): Promise<OpenResponse | Refusal | Unreached> {
    const { access, clock, metrics } = this.#options;
    const endpoint = await access.endpoint().catch((error: unknown) => {
      this.#accessMeter.failed(error);
      return unreachable(error);
    });
    if ("kind" in endpoint) return endpoint;
    this.#accessMeter.given(endpoint, wallMs(clock));
    const { body, idleMs, isWatch = false } = request;
    const message = { path: request.path, body: body === undefined ? undefined : Buffer.from(JSON.stringify(body)) };
    const verb = message.body === undefined ? "GET" : "POST";
    const metered = { verb, host: endpoint.server.host, isWatch, requestBytes: message.body?.length ?? 0 };
    const meter = new RequestMeter(metrics, metered, () => clock.nowMs());
    const response = await this.#sendTwice(endpoint, message, meter, signal).catch((error: unknown) => {
      meter.failed();
      throw error;
    });
    if ("kind" in response) {
      meter.failed();
      return response;
    }
    const { statusCode = 0, headers } = response;
    meter.answered(statusCode);
    const chunks = readBody(response, endpoint, { clock, idleMs, signal, meter });
    if (statusCode === HTTP.ok || statusCode === HTTP.created) return { kind: "open", chunks };
    return parseRefusal(statusCode, headers["retry-after"], await readText(chunks));
  }

  accessStamp(): string {
    return this.#options.access.stamp();
  }

  refreshCredentials(): void {
    this.#options.access.refresh();
  }

  close(): void {
    this.#agent?.destroy();
    this.#agent = undefined;
  }

  /** A kept connection that the server closed meanwhile says nothing about the server: ask once more. */
  async #sendTwice(
    endpoint: KubeEndpoint,
    message: Message,
    meter: RequestMeter,
    signal: AbortSignal,
  ): Promise<IncomingMessage | Unreached> {
    const first = await this.#send(endpoint, message, signal);
    if (first !== undefined) return first;
    meter.retried();
    const second = await this.#send(endpoint, message, signal);
    if (second === undefined) throw networkError(new Error("connection reset"), endpoint, signal);
    return second;
  }

  /** Resolves to undefined when the connection was a stale one from the pool. */
  async #send(endpoint: KubeEndpoint, { path, body }: Message, signal: AbortSignal): Promise<IncomingMessage | Unreached | undefined> {
    const { server, headers, tls } = endpoint;
    const isTls = server.protocol === "https:";
    const proxy = proxyOf(endpoint, this.#options.env);
    this.#next = proxy ?? server;
    const literal = bareHost(this.#next);
    if (isIP(literal) !== 0) this.#noteAddresses([literal]);
    const about = body === undefined ? {} : { "content-type": "application/json", "content-length": body.length };
    const url = new URL(server.pathname.replace(/\/$/, "") + path, server);
    const login = isForwarded(server, proxy) ? proxyAuthorization(proxy) : undefined;
    const forProxy = login === undefined ? {} : { "proxy-authorization": login };
    const request = (isTls ? https : http).request(url, {
      method: body === undefined ? "GET" : "POST",
      agent: this.#agentFor(isTls, tls, proxy),
      headers: { accept: "application/json", "user-agent": "turnout", ...about, ...headers, ...forProxy },
      path: isForwarded(server, proxy) ? url.href : url.pathname + url.search,
      signal,
    });
    request.end(body);
    let isConnected = false;
    try {
      return await this.#answerOf(request, signal, () => (isConnected = true));
    } catch (error) {
      const isStale = request.reusedSocket && ["ECONNRESET", "EPIPE"].includes(errnoOf(error) ?? "");
      if (isStale && !signal.aborted) return undefined;
      const failure = networkError(error, endpoint, signal);
      if (isConnected || signal.aborted) throw failure;
      return { kind: "unreached", error: failure };
    }
  }

  #answerOf(request: ClientRequest, signal: AbortSignal, onConnected: () => void): Promise<IncomingMessage> {
    const { clock, connectTimeoutMs, answerTimeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        dog.stop();
        signal.removeEventListener("abort", abort);
      };
      // Not left to the request: it reports no end as long as its agent connects through a proxy.
      const fail = (error: Error): void => {
        settle();
        request.destroy(error);
        reject(error);
      };
      const abort = (): void => fail(new Error("the request was aborted"));
      const expire = (what: string) => (): void => fail(new ProxyError("timed_out", `the API server gave no ${what} in time`));
      let dog = new Watchdog(clock, connectTimeoutMs, expire("connection"));
      signal.addEventListener("abort", abort);
      if (signal.aborted) abort();
      const connected = (): void => {
        onConnected();
        dog.stop();
        dog = new Watchdog(clock, answerTimeoutMs, expire("answer"));
      };
      request.on("socket", (socket) => {
        if (request.reusedSocket || !socket.connecting) connected();
        else socket.once("encrypted" in socket ? "secureConnect" : "connect", connected);
      });
      request.on("response", (response) => {
        settle();
        resolve(response);
      });
      request.on("error", (error) => {
        settle();
        reject(error);
      });
      // All that is told of an answer that changes the protocol.
      request.on("close", () => {
        settle();
        reject(new Error("the connection was closed without an answer"));
      });
    });
  }

  #agentFor(isTls: boolean, tls: TlsMaterial, proxy: URL | undefined): Agent {
    const key = [isTls, tls, proxy?.href];
    if (this.#agent !== undefined && key.every((part, index) => part === this.#agentKey[index])) return this.#agent;
    retire(this.#agent);
    const { clock, connectTimeoutMs } = this.#options;
    const options = { keepAlive: true, keepAliveMsecs: 30_000, lookup: this.#lookup, ...tlsOptions(tls) };
    this.#agent = createAgent({ isTls, options, proxy, clock, connectTimeoutMs });
    this.#agentKey = key;
    this.#options.metrics?.transportCreated(1);
    return this.#agent;
  }

  /** All addresses of the name are noted, and not only the one that is tried: the next connection may be to another. */
  readonly #lookup: LookupFunction = (hostname, { all, ...options }, done) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const [first] = found ?? [];
      if (error !== null || first === undefined) {
        done(error, all === true ? [] : "", 0);
        return;
      }
      this.#noteAddresses(found.map(({ address }) => address));
      if (all === true) done(null, found);
      else done(null, first.address, first.family);
    });
  };

  #noteAddresses(addresses: readonly string[]): void {
    const port = this.#next === undefined ? "" : portOf(this.#next);
    this.#options.onAddresses?.(addresses.flatMap((address) => canonicalIP(address) ?? []).map(({ text }) => `${text} ${port}`));
  }
}

/** The proxy to an API server: the kubeconfig's for every address, else the environment's. */
export function proxyOf({ server, proxyUrl }: KubeEndpoint, env: Environment): URL | undefined {
  return proxyUrl ?? proxyFromEnvironment(server, env);
}

/** A request as it is sent. */
interface Message {
  readonly path: string;
  readonly body: Buffer | undefined;
}

interface Reading {
  readonly clock: Clock;
  readonly idleMs: number;
  readonly signal: AbortSignal;
  readonly meter: RequestMeter;
}

async function* readBody(response: IncomingMessage, endpoint: KubeEndpoint, reading: Reading): AsyncGenerator<Buffer> {
  const { clock, idleMs, signal, meter } = reading;
  const dog = new Watchdog(clock, idleMs, () => {
    response.destroy(new ProxyError("timed_out", "the API server went silent"));
  });
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      dog.restart();
      meter.received(chunk.length);
      yield chunk;
    }
  } catch (error) {
    throw networkError(error, endpoint, signal);
  } finally {
    dog.stop();
    meter.finished();
  }
}

async function readText(chunks: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes > REFUSAL_BYTES_MAX) break;
  }
  return Buffer.concat(parts).toString("utf8");
}

/** What can't work as the files are now is no fault of the server's; a login program may be dear. */
function unreachable(error: unknown): Unreached {
  if (!ProxyError.is(error) || ProxyError.is(error, "tool_failed")) throw error;
  return { kind: "unreached", error };
}

function networkError(error: unknown, endpoint: KubeEndpoint, signal: AbortSignal): ProxyError {
  if (signal.aborted) return new ProxyError("canceled", "the request was canceled", { cause: error });
  const object = endpoint.server.origin;
  if (ProxyError.is(error, "timed_out")) return new ProxyError("timed_out", error.what, { object, cause: error });
  return ProxyError.from(error, "feed_lost", "the connection to the API server failed", { object });
}

function tlsOptions(tls: TlsMaterial): https.AgentOptions {
  return {
    rejectUnauthorized: !tls.isInsecure,
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
    ...(tls.serverName === undefined ? {} : { servername: tls.serverName }),
  };
}

/** Let an agent's watches live on, and keep none of its connections afterwards. */
function retire(agent: Agent | undefined): void {
  if (agent === undefined) return;
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}
