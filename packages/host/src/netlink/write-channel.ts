import { Mutex } from "./mutex.ts";
import { errno, kernelError } from "./errno.ts";
import { messagesOf, NLMSG } from "./message.ts";
import type { NftBatch } from "./nft/nft-batch.ts";
import { NetlinkSocket, SOL } from "./socket.ts";

// @source asm-generic/socket.h, linux/netlink.h
const SO_SNDBUF = 7;
const SO_SNDBUFFORCE = 32;
const NETLINK_CAP_ACK = 10;
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
  readonly #socket: NetlinkSocket;
  readonly #answers = Buffer.allocUnsafeSlow(ANSWER_BYTES);
  readonly #turns = new Mutex();

  /** Open it in the network namespace of this thread. @throws {ProxyError} `host_unsupported`, `permission_denied`, `tool_failed`. */
  constructor(protocol: number) {
    this.#socket = new NetlinkSocket(protocol);
    this.port = this.#socket.bind();
    // The forced size needs CAP_NET_ADMIN of the host; without it the one that net.core.wmem_max allows must do.
    if (this.#socket.setOption(SOL.socket, SO_SNDBUFFORCE, BUFFER_BYTES) !== 0) this.#socket.setOption(SOL.socket, SO_SNDBUF, BUFFER_BYTES);
    // Refusals without the message that was refused: an older kernel sends it, too.
    this.#socket.setOption(SOL.netlink, NETLINK_CAP_ACK, 1);
  }

  /** Carry a batch out; resolves to what was refused: empty when it is in force. @throws {ProxyError} `tool_failed` when it could not be sent. */
  send({ bytes }: NftBatch): Promise<readonly Refused[]> {
    return this.#turns.run(() => this.#send(bytes));
  }

  /** Close it once what is under way has ended. */
  close(): void {
    void this.#turns.run(() => Promise.resolve(this.#socket.close()));
  }

  async #send(bytes: Buffer): Promise<readonly Refused[]> {
    const { length, error } = await this.#socket.sendInThread(bytes);
    if (length === bytes.length) return this.#refusals();
    const hint = [errno("EMSGSIZE"), errno("ENOBUFS")].includes(error) ? { hint: "raise net.core.wmem_max" } : {};
    throw kernelError(error, "a transaction can't be sent", hint);
  }

  /** The kernel has answered when sending ends, and says nothing of what it has done as it should. */
  #refusals(): readonly Refused[] {
    const refused: Refused[] = [];
    for (;;) {
      const received = this.#socket.receiveNow(this.#answers);
      if (received === undefined) return refused;
      if ("error" in received) throw kernelError(received.error, "the answer to a transaction can't be read");
      for (const { type, seq, payload } of messagesOf(this.#answers.subarray(0, received.length))) {
        const number = type === NLMSG.error ? -payload.readInt32LE(0) : 0;
        if (number !== 0) refused.push({ sequence: seq, errno: number });
      }
    }
  }
}
