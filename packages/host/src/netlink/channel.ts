import { ProxyError } from "@turnout/core";
import type { RawNetlinkSocket } from "netlink";
import { encodeMessage, messagesOf, NLM_F, NLMSG } from "./message.ts";
import type { NetlinkMessage } from "./message.ts";
import { closeLater, openSocket } from "./socket.ts";

/** How many requests may be under way at once: netlink 0.3.0 aborts the process at some thousand. */
export const MAX_IN_FLIGHT = 64;

/** Called for every message of an answer; its payload is only valid during the call. */
export type OnReply = (type: number, payload: Buffer) => void;

/** How a dump ended: `errno` 0 is success; `interrupted`: the table changed meanwhile, entries may be missing or double. */
export interface DumpEnd {
  readonly errno: number;
  readonly interrupted: boolean;
}

interface Operation {
  /** Sequence numbers still without an end, and the place of each in `errnos`. */
  readonly open: Map<number, number>;
  readonly errnos: number[];
  readonly onReply: OnReply;
  interrupted: boolean;
  readonly done: () => void;
  readonly fail: (error: ProxyError) => void;
}

/**
 * Requests and answers over one netlink socket, opened on first use and again after it broke.
 *
 * One operation at a time, since two dumps on one socket are refused; answers are streamed, not collected.
 * Edges: an idle channel does not keep the process alive. When the kernel dropped answers (ENOBUFS) the operation
 * fails with a retryable error.
 */
export class NetlinkChannel {
  readonly #open: () => RawNetlinkSocket;
  #socket: RawNetlinkSocket | undefined;
  #current: Operation | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #seq = 1;

  /** `open` is called for each socket, for one of another network namespace than this process's. */
  constructor(protocol: number, open: (protocol: number) => RawNetlinkSocket = openSocket) {
    this.#open = () => open(protocol);
  }

  /** Send one request and resolve to its errno, 0 for success. @throws {ProxyError} what {@link openSocket} throws; `tool_failed` when the socket broke. */
  async request(type: number, payload: Uint8Array, onReply: OnReply = ignoreReply, flags = 0): Promise<number> {
    const { errnos } = await this.#perform(type, NLM_F.ack | flags, [payload], onReply);
    return errnos[0] ?? 0;
  }

  /** Send up to {@link MAX_IN_FLIGHT} requests of one type in one go and resolve to their errnos, in order. @throws as {@link NetlinkChannel.request}. */
  async requestMany(type: number, payloads: readonly Uint8Array[]): Promise<readonly number[]> {
    const errnos: number[] = [];
    for (let at = 0; at < payloads.length; at += MAX_IN_FLIGHT) {
      const part = await this.#perform(type, NLM_F.ack, payloads.slice(at, at + MAX_IN_FLIGHT), ignoreReply);
      errnos.push(...part.errnos);
    }
    return errnos;
  }

  /** Walk a table. @throws as {@link NetlinkChannel.request}. */
  async dump(type: number, payload: Uint8Array, onReply: OnReply): Promise<DumpEnd> {
    const { errnos, interrupted } = await this.#perform(type, NLM_F.dump, [payload], onReply);
    return { errno: errnos[0] ?? 0, interrupted };
  }

  /** Close the socket; what is under way fails with `canceled`. A later request opens it again. */
  close(): void {
    this.#drop(new ProxyError("canceled", "the netlink channel was closed"));
  }

  #perform(type: number, flags: number, payloads: readonly Uint8Array[], onReply: OnReply): Promise<Operation> {
    const next = this.#queue.then(() => this.#start(type, flags, payloads, onReply));
    // The queue only orders; whoever waits for `next` gets the error.
    this.#queue = next.then(
      () => undefined,
      () => undefined,
    );
    return next;
  }

  #start(type: number, flags: number, payloads: readonly Uint8Array[], onReply: OnReply): Promise<Operation> {
    return new Promise((resolve, reject) => {
      const socket = this.#listen();
      const open = new Map<number, number>();
      const encoded = payloads.map((payload, place) => {
        const seq = this.#seq;
        this.#seq = seq === 0xffffffff ? 1 : seq + 1;
        open.set(seq, place);
        return encodeMessage(type, NLM_F.request | flags, seq, payload);
      });
      const errnos = payloads.map(() => 0);
      const done = (): void => resolve(operation);
      const operation: Operation = { open, errnos, onReply, interrupted: false, done, fail: reject };
      this.#current = operation;
      socket.ref();
      socket.send(Buffer.concat(encoded), {}, (error) => {
        if (error !== undefined && this.#current === operation) this.#drop(broken(error));
      });
    });
  }

  #listen(): RawNetlinkSocket {
    if (this.#socket !== undefined) return this.#socket;
    const socket = this.#open();
    // Without a listener an error event would throw inside the native callback and abort the process.
    // After an error (ENOBUFS, seen as EBADF) the package has closed the socket: it is of no more use.
    socket.on("error", (error) => {
      if (this.#socket === socket) this.#drop(broken(error));
    });
    socket.on("message", (datagram, info) => {
      // Port 0 is the kernel; any process may send to our port.
      if (this.#socket === socket && info.port === 0) this.#receive(datagram);
    });
    this.#socket = socket;
    return socket;
  }

  #receive(datagram: Buffer): void {
    try {
      for (const message of messagesOf(datagram)) {
        if (this.#current?.open.has(message.seq) === true) this.#handle(this.#current, message);
      }
    } catch (error) {
      // netlink 0.3.0 loses what is thrown in here, so it goes to whoever waits. A dump may be half read: a new socket.
      this.#drop(ProxyError.from(error, "tool_failed", "a netlink answer could not be read"));
    }
  }

  #handle(operation: Operation, message: NetlinkMessage): void {
    if ((message.flags & NLM_F.dumpInterrupted) !== 0) operation.interrupted = true;
    if (message.type !== NLMSG.error && message.type !== NLMSG.done) {
      operation.onReply(message.type, message.payload);
      return;
    }
    const place = operation.open.get(message.seq) ?? 0;
    operation.errnos[place] = message.payload.length >= 4 ? Math.abs(message.payload.readInt32LE(0)) : 0;
    operation.open.delete(message.seq);
    if (operation.open.size > 0) return;
    this.#current = undefined;
    this.#socket?.unref();
    operation.done();
  }

  #drop(reason: ProxyError): void {
    const socket = this.#socket;
    const operation = this.#current;
    this.#socket = undefined;
    this.#current = undefined;
    if (socket !== undefined) closeLater(socket);
    operation?.fail(reason);
  }
}

function ignoreReply(): void {
  // Only success or failure was asked for.
}

function broken(error: Error): ProxyError {
  return ProxyError.from(error, "tool_failed", "the netlink socket broke", { hint: "the kernel may have dropped answers; try again" });
}
