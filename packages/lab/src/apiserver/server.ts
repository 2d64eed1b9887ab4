import http, { type IncomingMessage, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { ProxyError } from "@turnout/core";
import { isApiObject, objectKey, type ApiObject } from "./api-object.ts";
import { Faults, fits, type Misbehaviour } from "./faults.ts";
import { kubeconfigFor, type KubeconfigParts } from "./kubeconfig.ts";
import { ObjectStore } from "./object-store.ts";
import { handleRequest } from "./request-handler.ts";
import { RESOURCES, type ServedKind } from "./resources.ts";
import type { WatchStream } from "./watch-stream.ts";
import { admit } from "./writes.ts";

/** TLS of the emulator; all PEM. */
export interface ApiServerTls {
  readonly cert: string;
  readonly key: string;
  /** The authority that signed `cert`, put into the kubeconfig. */
  readonly ca?: string;
  /** When given, clients must show a certificate signed by it. */
  readonly clientCa?: string;
}

/** How an emulator is made; everything has a default. */
export interface ApiServerOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  readonly tls?: ApiServerTls;
  /** Bearer token every request must carry; none by default. */
  readonly token?: string;
  /** Kinds that are answered with 404, e.g. ServiceCIDR for a cluster before 1.33. */
  readonly without?: readonly ServedKind[];
  /** What `/version` says; default v1.34.0-turnout-lab. */
  readonly version?: string;
  /** How often watches get a bookmark; default 60,000. */
  readonly bookmarkMs?: number;
  /** Writes remembered; default 20,000. */
  readonly historyMax?: number;
  /** Default Date.now. */
  readonly nowMs?: () => number;
}

/** One request the emulator got. */
export interface RequestRecord {
  readonly method: string;
  /** Path and query as sent. */
  readonly url: string;
  readonly authorization: string | undefined;
  /** Number of the TCP connection it came on, from 1. */
  readonly connection: number;
}

/** A Kubernetes API server for what a service proxy reads and writes, over real HTTP, that misbehaves on command. */
export interface ApiServer {
  /** e.g. `http://127.0.0.1:40123`; stays the same over pause and resume. */
  readonly url: string;
  /** All requests so far, the oldest of more than 10,000 dropped. */
  readonly requests: readonly RequestRecord[];
  /** Watches that are open now. */
  readonly watchCount: number;
  /** TCP connections that are open now. */
  readonly connectionCount: number;
  /** The revision of the newest write. */
  readonly revision: number;
  /** Create or replace, status included. @throws {ProxyError} `invalid_object` for an unknown kind or a missing name. */
  apply(object: unknown): ApiObject;
  /** Delete; false when there was none. `namespace` "" for cluster-scoped kinds. */
  delete(kind: ServedKind, namespace: string, name: string): boolean;
  /** List a kind by key. */
  objects(kind: ServedKind): readonly ApiObject[];
  /** Write a kubeconfig as YAML; `parts` overrides, e.g. the server's address as seen from a namespace. */
  kubeconfig(parts?: Partial<KubeconfigParts>): string;
  /** Ask for another token from now on; undefined: for none. */
  requireToken(token: string | undefined): void;
  /** Start misbehaving. Returns the way to stop. */
  misbehave(what: Misbehaviour): () => void;
  /** Stop misbehaving altogether. */
  behave(): void;
  /** Cut (or properly end) all open watches; returns how many. */
  dropWatches(how?: "cut" | "end"): number;
  /** Forget the history: resuming clients get 410. */
  compact(): void;
  /** Send a bookmark to all watches now. */
  bookmark(): void;
  /** Refuse connections and cut the open ones; the port is kept for `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

const REQUESTS_MAX = 10_000;

/** Start an emulator. @throws {ProxyError} `tool_failed` when the address can't be listened on. */
export async function createApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const server = new EmulatedApiServer(options);
  await server.resume();
  return server;
}

class EmulatedApiServer implements ApiServer {
  readonly requests: RequestRecord[] = [];
  readonly #options: ApiServerOptions;
  readonly #store: ObjectStore;
  readonly #faults = new Faults();
  readonly #watches = new Set<WatchStream>();
  readonly #sockets = new Map<Socket, number>();
  readonly #host: string;
  #port: number;
  #connections = 0;
  #token: string | undefined;
  #server: http.Server | undefined;
  #bookmarks: NodeJS.Timeout | undefined;

  constructor(options: ApiServerOptions) {
    this.#options = options;
    this.#host = options.host ?? "127.0.0.1";
    this.#port = options.port ?? 0;
    this.#token = options.token;
    this.#store = new ObjectStore({ historyMax: options.historyMax ?? 20_000 });
    this.#store.onEvent((event) => {
      for (const watch of this.#watches) watch.deliver(event);
    });
  }

  get url(): string {
    const host = this.#host.includes(":") ? `[${this.#host}]` : this.#host;
    return `${this.#options.tls === undefined ? "http" : "https"}://${host}:${this.#port}`;
  }

  get watchCount(): number {
    return this.#watches.size;
  }

  get connectionCount(): number {
    return this.#sockets.size;
  }

  get revision(): number {
    return this.#store.revision;
  }

  apply(object: unknown): ApiObject {
    const resource = isApiObject(object) ? RESOURCES.find(({ kind }) => kind === object.kind) : undefined;
    if (!isApiObject(object) || resource === undefined) {
      const hint = `give one of ${RESOURCES.map(({ kind }) => kind).join(", ")} with metadata.name`;
      throw new ProxyError("invalid_object", "the emulator can't store this", { hint });
    }
    const namespace = resource.isNamespaced ? (object.metadata.namespace ?? "default") : "";
    const before = this.#store.get(resource.kind, objectKey(namespace, object.metadata.name));
    return this.#store.put(resource.kind, admit(resource, structuredClone(object), before, this.#nowMs()));
  }

  delete(kind: ServedKind, namespace: string, name: string): boolean {
    return this.#store.remove(kind, objectKey(namespace, name)) !== undefined;
  }

  objects(kind: ServedKind): readonly ApiObject[] {
    return this.#store.list(kind);
  }

  kubeconfig(parts: Partial<KubeconfigParts> = {}): string {
    return kubeconfigFor({ server: this.url, ca: this.#options.tls?.ca, token: this.#token, ...parts });
  }

  requireToken(token: string | undefined): void {
    this.#token = token;
  }

  misbehave(what: Misbehaviour): () => void {
    if (what.hang === true && what.times === undefined) {
      for (const watch of this.#watches) if (fits(what, "watch", watch.kind)) watch.silence();
    }
    return this.#faults.add(what);
  }

  behave(): void {
    this.#faults.clear();
  }

  dropWatches(how: "cut" | "end" = "cut"): number {
    const watches = [...this.#watches];
    for (const watch of watches) how === "cut" ? watch.drop() : watch.end();
    return watches.length;
  }

  compact(): void {
    this.#store.compact();
  }

  bookmark(): void {
    for (const watch of this.#watches) watch.bookmark(this.#store.revision);
  }

  async pause(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    clearInterval(this.#bookmarks);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.#sockets.keys()) socket.destroy();
    await closed;
  }

  async resume(): Promise<void> {
    if (this.#server !== undefined) return;
    const { tls } = this.#options;
    const listener = (request: IncomingMessage, response: ServerResponse): void => this.#serve(request, response);
    const server = tls === undefined ? http.createServer(listener) : https.createServer(tlsOptions(tls), listener);
    server.on("connection", (socket: Socket) => {
      this.#sockets.set(socket, ++this.#connections);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) => reject(ProxyError.from(error, "tool_failed", `can't listen on ${this.#host}`)));
      server.listen(this.#port, this.#host, resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    this.#bookmarks = setInterval(() => this.bookmark(), this.#options.bookmarkMs ?? 60_000);
  }

  async close(): Promise<void> {
    await this.pause();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    // A TLS socket is not the one "connection" reported; its ports are.
    const connection = [...this.#sockets].find(([socket]) => socket.remotePort === request.socket.remotePort)?.[1] ?? 0;
    const { method = "", url = "", headers } = request;
    this.requests.push({ method, url, authorization: headers.authorization, connection });
    if (this.requests.length > REQUESTS_MAX) this.requests.shift();
    const context = {
      store: this.#store,
      faults: this.#faults,
      nowMs: () => this.#nowMs(),
      without: this.#options.without ?? [],
      version: this.#options.version ?? "v1.34.0-turnout-lab",
      token: () => this.#token,
      onWatch: (stream: WatchStream, to: ServerResponse) => {
        this.#watches.add(stream);
        to.on("close", () => this.#watches.delete(stream));
      },
    };
    handleRequest(context, request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  }

  #nowMs(): number {
    return (this.#options.nowMs ?? Date.now)();
  }
}

function tlsOptions(tls: ApiServerTls): https.ServerOptions {
  const client = tls.clientCa === undefined ? {} : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true };
  return { cert: tls.cert, key: tls.key, ...client };
}
