import { setImmediate as nextTurn } from "node:timers/promises";
import { ProxyError } from "@turnout/core";
import { Mutex } from "./mutex.ts";
import { kernelError } from "./errno.ts";
import { encodeMessage, messagesOf, NLM_F, NLMSG } from "./message.ts";
import type { NetlinkMessage } from "./message.ts";
import { NetlinkSocket, SOL } from "./socket.ts";

/** How many requests are sent at once: what the kernel answers to so many fits into the socket's buffer. */
export const MAX_IN_FLIGHT = 64;
/** Longer than any datagram of a dump: the kernel makes them 32 KiB long for who takes so much. */
const DATAGRAM_BYTES = 64 << 10;
/** The kernel answers at once: it works while it is asked. */
const TIMEOUT_SECONDS = 30;
/** @source asm-generic/socket.h, linux/netlink.h */
const OPTION = { receiveBuffer: 8, receiveTimeout: 20, ackWithoutRequest: 10, strictCheck: 12 } as const;
/** Wanted buffer in bytes; the kernel caps it at net.core.rmem_max without saying so. */
const BUFFER_BYTES = 4 << 20;

/** Called for every message of an answer; its payload is only valid during the call. */
export type OnReply = (type: number, payload: Buffer) => void;

/** How a dump ended: `errno` 0 is success; `interrupted`: the table changed meanwhile, entries may be missing or double. */
export interface DumpEnd {
  readonly errno: number;
  readonly interrupted: boolean;
}

/** The socket of a channel: requests go out, and pieces of the answer come in. */
export interface RequestSocket {
  send(request: Buffer): void;
  /** What has come already. @throws {ProxyError} when the kernel dropped answers. */
  receiveNow(): Buffer | undefined;
  /** What comes next. Never fails, as it may be a while before it is waited for. */
  receive(): Promise<Buffer | ProxyError>;
  close(): void;
}

/** Open the socket of a channel in the network namespace of this thread. @throws {ProxyError} `host_unsupported`, `permission_denied`, `tool_failed`. */
export function openSocket(protocol: number): RequestSocket {
  const socket = new NetlinkSocket(protocol);
  socket.connect();
  const timeout = Buffer.alloc(16);
  timeout.writeBigInt64LE(BigInt(TIMEOUT_SECONDS), 0);
  socket.setOption(SOL.socket, OPTION.receiveTimeout, timeout);
  socket.setOption(SOL.socket, OPTION.receiveBuffer, BUFFER_BYTES);
  socket.setOption(SOL.netlink, OPTION.ackWithoutRequest, 1);
  // Without it rtnetlink reads over what a request for a dump says besides its header. Kernels before 4.20 have none.
  socket.setOption(SOL.netlink, OPTION.strictCheck, 1);
  // One is read while the next one comes. Not from Buffer's shared pool: C writes into them.
  let [next, other] = [Buffer.allocUnsafeSlow(DATAGRAM_BYTES), Buffer.allocUnsafeSlow(DATAGRAM_BYTES)];
  const turn = (): Buffer => {
    [next, other] = [other, next];
    return other;
  };
  return {
    send: (request) => socket.send(request),
    receiveNow() {
      const received = socket.receiveNow(next);
      if (received !== undefined && "error" in received) throw kernelError(received.error, "a netlink answer can't be received");
      return received && turn().subarray(0, received.length);
    },
    async receive() {
      const buffer = turn();
      const { length, error } = await socket.receiveInThread(buffer);
      return length > 0 ? buffer.subarray(0, length) : kernelError(error, "a netlink answer can't be received");
    },
    close: () => socket.close(),
  };
}

/**
 * Requests and answers over one netlink socket, opened on first use and again after it broke.
 *
 * One operation at a time, since two dumps on one socket are refused; answers are streamed, not collected. The kernel makes a dump while its
 * pieces are received: all but the first in another thread, so that this one reads the piece before meanwhile, and does what else there is to do.
 * Pieces are as long as there are, because a set of nf_tables is walked from its beginning for each: 100,000 elements cost 0.4 s of CPU time in
 * pieces of 32 KiB, and 3.4 s in those of 4 KiB. A large dump has a channel of its own, so that nothing waits for it.
 * Edges: an idle channel does not keep the process alive. When the kernel dropped answers (ENOBUFS) the operation
 * fails with a retryable error.
 */
export class NetlinkChannel {
  readonly #open: () => RequestSocket;
  #socket: RequestSocket | undefined;
  readonly #turns = new Mutex();
  #closings = 0;
  #seq = 0;

  /** `open` is called for each socket, for one of another network namespace than this process's. */
  constructor(protocol: number, open: (protocol: number) => RequestSocket = openSocket) {
    this.#open = () => open(protocol);
  }

  /** Send one request and resolve to its errno, 0 for success. @throws {ProxyError} what {@link openSocket} throws; `tool_failed` when the socket broke. */
  async request(type: number, payload: Uint8Array, onReply: OnReply = () => undefined, flags = 0): Promise<number> {
    const { errnos } = await this.#perform(type, NLM_F.ack | flags, [payload], onReply);
    return errnos[0] ?? 0;
  }

  /** Send requests of one type, {@link MAX_IN_FLIGHT} at once, and resolve to their errnos, in order. @throws as {@link NetlinkChannel.request}. */
  async requestMany(type: number, payloads: readonly Uint8Array[]): Promise<readonly number[]> {
    const errnos: number[] = [];
    for (let at = 0; at < payloads.length; at += MAX_IN_FLIGHT) {
      const part = await this.#perform(type, NLM_F.ack, payloads.slice(at, at + MAX_IN_FLIGHT), () => undefined);
      errnos.push(...part.errnos);
    }
    return errnos;
  }

  /** Walk a table. @throws as {@link NetlinkChannel.request}. */
  async dump(type: number, payload: Uint8Array, onReply: OnReply): Promise<DumpEnd> {
    const { errnos, interrupted } = await this.#perform(type, NLM_F.dump, [payload], onReply);
    return { errno: errnos[0] ?? 0, interrupted };
  }

  /** Close the socket once what is under way has ended; what has not begun fails with `canceled`. */
  close(): void {
    this.#closings += 1;
    void this.#turns.run(() => Promise.resolve(this.#drop()));
  }

  /** In turn; a socket that broke is left. */
  #perform(type: number, flags: number, payloads: readonly Uint8Array[], onReply: OnReply): Promise<Answer> {
    const closings = this.#closings;
    return this.#turns.run(async () => {
      if (this.#closings !== closings) throw new ProxyError("canceled", "the netlink channel was closed");
      try {
        return await this.#ask(type, flags, payloads, onReply);
      } catch (error) {
        this.#drop();
        throw ProxyError.from(error, "tool_failed", "a netlink answer could not be read");
      }
    });
  }

  async #ask(type: number, flags: number, payloads: readonly Uint8Array[], onReply: OnReply): Promise<Answer> {
    const socket = (this.#socket ??= this.#open());
    /** Sequence numbers still without an end, and the place of each in `errnos`. */
    const open = new Map<number, number>();
    const errnos = payloads.map(() => 0);
    let interrupted = false;
    const requests = payloads.map((payload, place) => {
      this.#seq = this.#seq === 0xffff_ffff ? 1 : this.#seq + 1;
      open.set(this.#seq, place);
      return encodeMessage(type, NLM_F.request | flags, this.#seq, payload);
    });
    socket.send(Buffer.concat(requests));
    // What is asked a thousand times in a row leaves the event loop its turns.
    await nextTurn();
    const receive = (): Buffer | Promise<Buffer | ProxyError> => socket.receiveNow() ?? socket.receive();
    for (let coming = receive(); ;) {
      const piece = await coming;
      if (ProxyError.is(piece)) throw piece;
      const messages = Array.from(messagesOf(piece)).filter(({ seq }) => open.has(seq));
      for (const { seq, payload } of messages.filter(isEnd)) {
        errnos[open.get(seq) ?? 0] = payload.length >= 4 ? Math.abs(payload.readInt32LE(0)) : 0;
        open.delete(seq);
      }
      // Asked for before this piece is read; after the end nothing comes.
      if (open.size > 0) coming = flags === NLM_F.dump ? socket.receive() : receive();
      try {
        for (const one of messages) {
          interrupted ||= (one.flags & NLM_F.dumpInterrupted) !== 0;
          if (!isEnd(one)) onReply(one.type, one.payload);
        }
      } catch (error) {
        // The socket can't be closed while something receives from it.
        await coming;
        throw error;
      }
      if (open.size === 0) return { errnos, interrupted };
    }
  }

  #drop(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }
}

interface Answer {
  readonly errnos: readonly number[];
  readonly interrupted: boolean;
}

function isEnd({ type }: NetlinkMessage): boolean {
  return type === NLMSG.error || type === NLMSG.done;
}
