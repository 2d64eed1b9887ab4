import type { Socket } from "node:net";
import { clientNetwork, wallMs, type Clock, type Log } from "@turnout/core";
import type { AnyReply } from "./health.ts";
import { parseHead, type RequestHead } from "./http-head.ts";
import { RequestQueue } from "./request-queue.ts";

/** Connections of all servers of one group; one holds about 10 KB. */
export const CONNECTIONS_MAX = 512;
/** Of a request, without its body. */
const HEAD_BYTES_MAX = 8_192;
/** Of what follows a head; one read counts as `READ_BYTES_MIN` at least, since it is the reads that take time. */
const BODY_BYTES_MAX = 131_072;
const READ_BYTES_MIN = 1_024;
/** A request has to be here within this time, it may wait for its turn as long, its answer has to be taken, and then the client has to leave. */
const HEAD_MS = 5_000;
const TURN_MS = 60_000;
const TAKE_MS = 60_000;
const LEAVE_MS = 1_000;
const SWEEP_MS = 1_000;
/** Between two lines of the log. */
const QUIET_MS = 60_000;

const PHRASES: Readonly<Record<number, string>> = {
  200: "OK",
  301: "Moved Permanently",
  308: "Permanent Redirect",
  400: "Bad Request",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  406: "Not Acceptable",
  409: "Conflict",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
};
const TEXT = { "Content-Type": "text/plain; charset=utf-8" };

/** Answers a request, and rejects for no reason that a client gives. */
type Answerer = (head: RequestHead, remoteAddress: string) => AnyReply | Promise<AnyReply>;

/**
 * Answers HTTP/1 on the connections of one or more servers: one request for each connection, within a share of this process's time.
 *
 * Shape: clients come from outside, and what they cost is bounded before it is done: a head of 8 KiB in 5 s, no second request (a body, and requests that
 * follow without waiting, are thrown away, and beyond 128 KiB of them the connection is closed), answers by {@link RequestQueue}. A newcomer is always taken: beyond {@link CONNECTIONS_MAX}
 * the client that has most loses the connection whose last step is longest ago. Steps are that it was made, that its request came, that its answer began, that it was made, and that the kernel has all of it.
 * Edges: the log reports closed connections once a minute at most, with how many there were since.
 */
export class HttpConnections {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #queue: RequestQueue;
  /** By client: when each has to be done, in the order of their last steps. */
  readonly #clients = new Map<string, Map<Socket, number>>();
  #size = 0;
  #isSweeping = false;
  #closed = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
    this.#queue = new RequestQueue(clock);
  }

  /** Take in a connection; `address` is the server's, for the log. */
  add(socket: Socket, address: string, answer: Answerer): void {
    const { remoteAddress = "" } = socket;
    socket.on("error", ignore);
    const client = networkOf(socket);
    socket.once("close", () => this.#forget(client, socket));
    this.#step(client, socket, HEAD_MS);
    this.#bound(address);
    let text = "";
    const read = (bytes: Buffer): void => {
      const from = Math.max(0, text.length - 3);
      text += bytes.toString("latin1", 0, HEAD_BYTES_MAX + 4 - text.length);
      const end = text.indexOf("\r\n\r\n", from);
      if (end < 0 && text.length < HEAD_BYTES_MAX) return;
      socket.off("data", read).off("end", leave);
      discard(socket);
      const head = end < 0 ? 431 : parseHead(text.slice(0, end));
      this.#step(client, socket, TURN_MS);
      const asker = { network: client, address: remoteAddress };
      const drop = this.#queue.add(asker, () => this.#answer(socket, client, head, (one) => answer(one, remoteAddress)));
      socket.once("close", drop);
    };
    const leave = (): void => void socket.destroy();
    socket.on("data", read).once("end", leave);
    if (!this.#isSweeping) void this.#sweep();
  }

  async #answer(
    socket: Socket,
    client: string,
    head: RequestHead | 400 | 431,
    answer: (head: RequestHead) => AnyReply | Promise<AnyReply>,
  ): Promise<void> {
    this.#step(client, socket, Number.POSITIVE_INFINITY);
    const reply = typeof head === "number" ? { status: head, headers: TEXT, body: `${PHRASES[head]}\n` } : await answer(head);
    this.#step(client, socket, TAKE_MS);
    socket.once("finish", () => this.#step(client, socket, LEAVE_MS));
    const headers = {
      ...reply.headers,
      Date: new Date(wallMs(this.#clock)).toUTCString(),
      "Content-Length": String(Buffer.byteLength(reply.body)),
      Connection: "close",
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${reply.status} ${PHRASES[reply.status] ?? ""}\r\n${lines.join("")}\r\n`);
    if (typeof head !== "number" && head.method === "HEAD") socket.end();
    else socket.end(reply.body);
  }

  #step(client: string, socket: Socket, withinMs: number): void {
    if (socket.destroyed) return;
    const ofClient = this.#clients.get(client) ?? new Map<Socket, number>();
    if (!ofClient.delete(socket)) this.#size++;
    ofClient.set(socket, this.#clock.nowMs() + withinMs);
    this.#clients.set(client, ofClient);
  }

  #forget(client: string, socket: Socket): void {
    const ofClient = this.#clients.get(client);
    if (ofClient?.delete(socket) !== true) return;
    this.#size--;
    if (ofClient.size === 0) this.#clients.delete(client);
  }

  #bound(address: string): void {
    if (this.#size <= CONNECTIONS_MAX) return;
    const [client, sockets] = [...this.#clients].reduce((most, one) => (one[1].size > most[1].size ? one : most));
    const [oldest] = sockets.keys();
    if (oldest === undefined) return;
    this.#forget(client, oldest);
    oldest.destroy();
    this.#closed++;
    const nowMs = this.#clock.nowMs();
    if (nowMs < this.#reportedMs + QUIET_MS) return;
    const hint = "many clients that don't finish their requests? see who they are with ss -tn, and keep them away from the port";
    const fields = { address, most: CONNECTIONS_MAX, closed: this.#closed, hint };
    this.#log.warn("too many connections: those that have asked for nothing for longest are closed", fields);
    [this.#closed, this.#reportedMs] = [0, nowMs];
  }

  async #sweep(): Promise<void> {
    this.#isSweeping = true;
    while (this.#size > 0) {
      await this.#clock.sleep(SWEEP_MS, NEVER);
      const nowMs = this.#clock.nowMs();
      for (const sockets of this.#clients.values()) for (const [socket, deadlineMs] of sockets) if (deadlineMs <= nowMs) socket.destroy();
    }
    this.#isSweeping = false;
  }
}

const NEVER = new AbortController().signal;

/** What a client's socket complains about is shown by its end. */
function ignore(): void {
  return undefined;
}

/** Read on, so that it is noticed when the client leaves, but not for ever. */
function discard(socket: Socket): void {
  let bytes = 0;
  const count = ({ length }: Buffer): void => {
    bytes += Math.max(READ_BYTES_MIN, length);
    if (bytes > BODY_BYTES_MAX) socket.destroy();
  };
  socket.on("data", count);
}

/** A client's network; this host's own addresses are each one by itself, so that kubelet shares no turn with Pods of the node's /64. */
function networkOf({ remoteAddress = "", localAddress }: Socket): string {
  return remoteAddress === localAddress ? remoteAddress : clientNetwork(remoteAddress);
}
