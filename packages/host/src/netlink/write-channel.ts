import { ProxyError } from "@turnout/core";
import { errno, kernelError } from "./errno.ts";
import { loadLibc } from "./libc.ts";
import { isSupportedByteOrder, messagesOf, NLMSG } from "./message.ts";
import type { NftBatch } from "./nft/nft-batch.ts";

// @source linux/socket.h, asm-generic/socket.h, linux/netlink.h
const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_SNDBUFFORCE = 32;
const SOL_NETLINK = 270;
const NETLINK_CAP_ACK = 10;
const MSG_DONTWAIT = 0x40;
/** Longest transaction; the kernel takes memory only for what is sent. */
const BUFFER_BYTES = 512 << 20;
const ANSWER_BYTES = 64 << 10;

/** What the kernel refused of a batch. */
export interface Refused {
  /** The number of the message, see {@link NftBatch}. */
  readonly sequence: number;
  readonly errno: number;
}

/**
 * Sends transactions of nf_tables over a socket of its own.
 *
 * The kernel carries a transaction out while it is sent. It does that in another thread here, so that this one goes on meanwhile.
 * Edges: one after the other. What the kernel has begun can't be given up.
 */
export class WriteChannel {
  /** Its address among netlink sockets: the kernel tells of what was done over it as of this port. */
  readonly port: number;
  readonly #libc: ReturnType<typeof declareLibc>;
  readonly #fd: number;
  readonly #answers = Buffer.allocUnsafeSlow(ANSWER_BYTES);
  #last: Promise<unknown> = Promise.resolve();

  /** Open it in the network namespace of this thread. @throws {ProxyError} `host_unsupported`, `permission_denied`, `tool_failed`. */
  constructor(protocol: number) {
    if (!isSupportedByteOrder) throw new ProxyError("host_unsupported", "netlink needs a little-endian machine");
    this.#libc = declareLibc();
    this.#fd = this.#libc.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, protocol);
    if (this.#fd < 0) throw kernelError(this.#libc.errno(), "a netlink socket can't be opened");
    this.port = this.#bind();
    // The forced size needs CAP_NET_ADMIN of the host; without it the one that net.core.wmem_max allows must do.
    if (this.#setOption(SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES) < 0) this.#setOption(SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
    // Refusals without the message that was refused: an older kernel sends it, too.
    this.#setOption(SOL_NETLINK, NETLINK_CAP_ACK, 1);
  }

  /** Carry a batch out; resolves to what was refused: empty when it is in force. @throws {ProxyError} `tool_failed` when it could not be sent. */
  send({ bytes }: NftBatch): Promise<readonly Refused[]> {
    const sent = this.#last.then(() => this.#send(bytes));
    // The queue only orders; whoever waits for `sent` gets the error.
    this.#last = sent.then(
      () => undefined,
      () => undefined,
    );
    return sent;
  }

  /** Close it once what is under way has ended. */
  close(): void {
    void this.#last.then(() => this.#libc.close(this.#fd));
  }

  /** Get a port from the kernel. */
  #bind(): number {
    // struct sockaddr_nl: family, padding, port, groups. Port 0 asks for one.
    const address = Buffer.alloc(12);
    address.writeUInt16LE(AF_NETLINK);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(address.length);
    const isBound = this.#libc.bind(this.#fd, address, address.length) === 0 && this.#libc.name(this.#fd, address, length) === 0;
    if (!isBound) throw kernelError(this.#libc.errno(), "a netlink socket can't be opened");
    return address.readUInt32LE(4);
  }

  #send(bytes: Buffer): Promise<readonly Refused[]> {
    return new Promise((resolve, reject) => {
      this.#libc.send(this.#fd, bytes, (error, length) => {
        if (error !== undefined && error !== null) return reject(ProxyError.from(error, "tool_failed", "a transaction can't be sent"));
        if (length === bytes.length) return resolve(this.#refusals());
        const number = this.#libc.errno();
        const hint = [errno("EMSGSIZE"), errno("ENOBUFS")].includes(number) ? { hint: "raise net.core.wmem_max" } : {};
        reject(kernelError(number, "a transaction can't be sent", hint));
      });
    });
  }

  /** The kernel has answered when sending ends, and says nothing of what it has done as it should. */
  #refusals(): readonly Refused[] {
    const refused: Refused[] = [];
    for (;;) {
      const length = this.#libc.receive(this.#fd, this.#answers, ANSWER_BYTES, MSG_DONTWAIT);
      if (length < 0) {
        const number = this.#libc.errno();
        if (number === errno("EAGAIN")) return refused;
        if (number === errno("EINTR")) continue;
        throw kernelError(number, "the answer to a transaction can't be read");
      }
      for (const { type, seq, payload } of messagesOf(this.#answers.subarray(0, length))) {
        const number = type === NLMSG.error ? -payload.readInt32LE(0) : 0;
        if (number !== 0) refused.push({ sequence: seq, errno: number });
      }
    }
  }

  #setOption(level: number, name: number, value: number): number {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(value);
    return this.#libc.setOption(this.#fd, level, name, bytes, bytes.length);
  }
}

function declareLibc(): {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Buffer, length: number): number;
  name(fd: number, address: Buffer, length: Buffer): number;
  setOption(fd: number, level: number, name: number, value: Buffer, length: number): number;
  /** Calls send in another thread. */
  send(fd: number, bytes: Buffer, done: (error: unknown, length: number) => void): void;
  receive(fd: number, bytes: Buffer, length: number, flags: number): number;
  close(fd: number): number;
  errno(): number;
} {
  const { koffi, libc } = loadLibc();
  const send = libc.func("intptr_t send(int fd, const void *message, size_t length, int flags)");
  return {
    socket: libc.func("int socket(int domain, int type, int protocol)"),
    bind: libc.func("int bind(int fd, const void *address, uint32_t length)"),
    name: libc.func("int getsockname(int fd, void *address, void *length)"),
    setOption: libc.func("int setsockopt(int fd, int level, int name, const void *value, uint32_t length)"),
    send: (fd, bytes, done) => void send.async(fd, bytes, bytes.length, 0, done),
    receive: libc.func("intptr_t recv(int fd, void *buffer, size_t length, int flags)"),
    close: libc.func("int close(int fd)"),
    errno: () => koffi.errno(),
  };
}
