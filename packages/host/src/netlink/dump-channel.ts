import { ProxyError } from "@turnout/core";
import type { DumpEnd, OnReply } from "./channel.ts";
import { kernelError } from "./errno.ts";
import { loadLibc } from "./libc.ts";
import { encodeMessage, isSupportedByteOrder, messagesOf, NLM_F, NLMSG } from "./message.ts";
import type { NetlinkMessage } from "./message.ts";

// @source linux/socket.h, asm-generic/socket.h, linux/time_types.h, linux/netlink.h
const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVTIMEO = 20;
const SOL_NETLINK = 270;
const NETLINK_GET_STRICT_CHK = 12;
/** The kernel answers at once: it works while it is asked. */
const TIMEOUT_SECONDS = 30;
/** Longer than any datagram of a dump: the kernel makes them 32 KiB long for who takes so much. */
const DATAGRAM_BYTES = 64 << 10;

/** The calls to libc that a channel is made of. */
interface Libc {
  send(fd: number, message: Buffer, length: number): number;
  /** Calls recv in another thread; what it fails with is not told. */
  receive(fd: number, buffer: Buffer, done: (error: unknown, length: number) => void): void;
  close(fd: number): void;
  errno(): number;
}

/**
 * Requests and answers over one netlink socket of its own, for large dumps.
 *
 * The kernel makes a dump while its pieces are received. It does that in another thread here, so that this one reads the piece before meanwhile,
 * and does what else there is to do. Pieces are as long as there are, because a set of nf_tables is walked from its beginning for each:
 * 100,000 elements cost 0.4 s of CPU time in pieces of 32 KiB, and 3.4 s in those of 4 KiB.
 * Edges: one operation after the other. Close it when none is under way.
 */
export class DumpChannel {
  readonly #libc: Libc;
  readonly #fd: number;
  /** One is read while the next one comes. Not from Buffer's shared pool: C writes into them. */
  readonly #buffers = [Buffer.allocUnsafeSlow(DATAGRAM_BYTES), Buffer.allocUnsafeSlow(DATAGRAM_BYTES)] as const;
  #seq = 0;

  /** Open it in the network namespace of this thread. @throws {ProxyError} `host_unsupported`, `permission_denied`, `tool_failed`. */
  constructor(protocol: number) {
    if (!isSupportedByteOrder) throw new ProxyError("host_unsupported", "netlink needs a little-endian machine");
    const { koffi, libc } = loadLibc();
    const socket = libc.func("int socket(int domain, int type, int protocol)");
    const setOption = libc.func("int setsockopt(int fd, int level, int name, const void *value, uint32_t length)");
    const send = libc.func("intptr_t send(int fd, const void *message, size_t length, int flags)");
    const recv = libc.func("intptr_t recv(int fd, _Out_ void *buffer, size_t length, int flags)");
    const close = libc.func("int close(int fd)");
    this.#libc = {
      send: (fd, message, length) => send(fd, message, length, 0) as number,
      receive: (fd, buffer, done) => void recv.async(fd, buffer, buffer.length, 0, done),
      close: (fd) => void close(fd),
      errno: () => koffi.errno(),
    };
    this.#fd = socket(AF_NETLINK, SOCK_RAW_CLOEXEC, protocol) as number;
    if (this.#fd < 0) throw kernelError(koffi.errno(), "a netlink socket can't be opened");
    const timeout = Buffer.alloc(16);
    timeout.writeBigInt64LE(BigInt(TIMEOUT_SECONDS), 0);
    setOption(this.#fd, SOL_SOCKET, SO_RCVTIMEO, timeout, timeout.length);
    // Without it rtnetlink reads over what a request for a dump says besides its header. Kernels before 4.20 have none.
    const strict = Buffer.alloc(4);
    strict.writeInt32LE(1);
    setOption(this.#fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, strict, strict.length);
  }

  /** Send one request and resolve to its errno, 0 for success. @throws {ProxyError} `tool_failed` when the answer doesn't come. */
  async request(type: number, payload: Uint8Array, onReply: OnReply = () => undefined): Promise<number> {
    return (await this.#perform(type, NLM_F.ack, payload, onReply)).errno;
  }

  /** Walk a table. @throws as {@link DumpChannel.request}. */
  dump(type: number, payload: Uint8Array, onReply: OnReply): Promise<DumpEnd> {
    return this.#perform(type, NLM_F.dump, payload, onReply);
  }

  close(): void {
    this.#libc.close(this.#fd);
  }

  async #perform(type: number, flags: number, payload: Uint8Array, onReply: OnReply): Promise<DumpEnd> {
    const seq = ++this.#seq;
    const message = encodeMessage(type, NLM_F.request | flags, seq, payload);
    if (this.#libc.send(this.#fd, message, message.length) < 0) throw kernelError(this.#libc.errno(), "the kernel can't be asked");
    let isInterrupted = false;
    let coming = this.#receive(0);
    for (let turn = 1; ; turn++) {
      const piece = await coming;
      if (piece instanceof ProxyError) throw piece;
      const messages = Array.from(messagesOf(piece)).filter((one) => one.seq === seq);
      const end = messages.find(isEnd);
      // Asked for before this piece is read; after the end nothing comes.
      if (end === undefined) coming = this.#receive(turn % 2);
      try {
        for (const one of messages) {
          isInterrupted ||= (one.flags & NLM_F.dumpInterrupted) !== 0;
          if (!isEnd(one)) onReply(one.type, one.payload);
        }
      } catch (error) {
        // The socket can't be closed while something receives from it.
        await coming;
        throw ProxyError.from(error, "tool_failed", "a netlink answer could not be read");
      }
      if (end === undefined) continue;
      return { errno: end.payload.length >= 4 ? Math.abs(end.payload.readInt32LE(0)) : 0, interrupted: isInterrupted };
    }
  }

  /** Never fails, because it may be a while before somebody waits for it. */
  #receive(index: number): Promise<Buffer | ProxyError> {
    const buffer = this.#buffers[index === 0 ? 0 : 1];
    return new Promise((resolve) => {
      this.#libc.receive(this.#fd, buffer, (error, length) => {
        if (length > 0) resolve(buffer.subarray(0, length));
        else resolve(ProxyError.from(error ?? new Error("nothing came"), "tool_failed", "a netlink answer can't be received"));
      });
    });
  }
}

function isEnd({ type }: NetlinkMessage): boolean {
  return type === NLMSG.error || type === NLMSG.done;
}
