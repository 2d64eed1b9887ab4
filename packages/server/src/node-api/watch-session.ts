import { once } from "node:events";
import { encodeDelivery, FAMILY_WORDS, PACKED_ROWS, readSettings, wire, type EncodeOptions } from "@turnout/client/protocol";
import { canonicalIP, isDNSName, ProxyError, Waiters, type IPFamily, type Log } from "@turnout/core";
import { status } from "@grpc/grpc-js";
import type { PeerRights } from "../grpc/peer-rights.ts";
import { endWith, refuse, type WatchCall } from "../grpc/refuse.ts";
import type { PartBuffers } from "./part-buffers.ts";
import type { RowBytes } from "./row-bytes.ts";
import type { Cursor, NodeStateRequest } from "./state-view.ts";
import type { StreamSlot } from "../grpc/stream-gate.ts";
import type { Traffic } from "../grpc/traffic.ts";
import type { Semaphore } from "../grpc/semaphore.ts";
import type { ViewLease, ViewRegistry } from "./view-registry.ts";

/** What all streams of a server have in common. */
export interface SessionContext {
  readonly registry: ViewRegistry;
  readonly bytes: RowBytes;
  readonly buffers: PartBuffers;
  /** Streams that are open. */
  readonly streams: () => number;
  readonly traffic: Traffic;
  /** Before those who want everything. */
  readonly semaphore: Semaphore;
  /** Program and version. */
  readonly version: string;
  /** The one node that may be asked for; undefined: any. */
  readonly onlyNode: string | undefined;
  readonly log: Log;
}

/** Each of a thousand clients that come at once holds two parts of its first state: about a stream's window, and no more. */
const PART_BYTES = 65_536;
const VERSION_MAX = 100;

/** Read a hello. @throws {ProxyError} saying what is wrong with it. */
export function readQuestion({ nodeName, settings, bindAddress }: wire.Hello, onlyNode: string | undefined): NodeStateRequest {
  if (!isDNSName(nodeName))
    throw new ProxyError("invalid_object", "hello.node_name is no name of a node", { object: JSON.stringify(nodeName) });
  if (settings === undefined) throw new ProxyError("invalid_object", "hello.settings is missing", { object: `node ${nodeName}` });
  if (bindAddress !== "" && canonicalIP(bindAddress)?.text !== bindAddress) {
    throw new ProxyError("invalid_object", "hello.bind_address is no canonical address", { object: JSON.stringify(bindAddress) });
  }
  if (onlyNode !== undefined && nodeName !== onlyNode) {
    throw new ProxyError("permission_denied", `only node ${onlyNode} may be asked for here`, { object: `node ${nodeName}` });
  }
  return { nodeName, settings: readSettings(settings), bindAddress };
}

/** One watcher's stream. */
export class WatchSession {
  readonly #call: WatchCall;
  readonly #context: SessionContext;
  readonly #rights: PeerRights;
  readonly #slot: StreamSlot;
  readonly #gone = new AbortController();
  readonly #asked = new Set<IPFamily>();
  #lease: ViewLease | undefined;
  #readsPacked = false;
  /** Its client closed its half: it gets what it asked for, and asks for nothing more. */
  #hasSaidAll = false;
  /** What was sent last is out. */
  #sent: Promise<void> = Promise.resolve();

  constructor(call: WatchCall, rights: PeerRights, slot: StreamSlot, context: SessionContext) {
    this.#call = call;
    this.#rights = rights;
    this.#slot = slot;
    this.#context = context;
  }

  /** Serve until the stream is over. */
  async run(): Promise<void> {
    const call = this.#call;
    const gone = (): void => this.#gone.abort();
    call.on("data", (bytes: Buffer) => this.#hear(bytes));
    call.on("end", () => {
      this.#hasSaidAll = true;
      this.#endWhenAnswered();
    });
    // A peer that died gives neither "end" nor "error".
    call.on("cancelled", gone);
    call.on("close", gone);
    call.on("error", gone);
    if (!this.#gone.signal.aborted) await once(this.#gone.signal, "abort");
    this.#lease?.release();
  }

  #hear(bytes: Buffer): void {
    try {
      const { request } = decode(bytes);
      if (request?.$case === "hello") this.#greet(request.value);
      else if (request?.$case === "ask") this.#ask(request.value);
      else throw new ProxyError("invalid_object", "the message is neither hello nor ask");
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      this.#fail(error);
    }
  }

  #greet(hello: wire.Hello): void {
    const { registry, onlyNode, version, log } = this.#context;
    if (this.#lease !== undefined)
      throw new ProxyError("invalid_object", "a second hello", { hint: "open another stream for another node" });
    const request = readQuestion(hello, onlyNode);
    this.#rights.check(request.nodeName);
    this.#slot.assign(request.nodeName);
    this.#lease = registry.acquire(request);
    this.#readsPacked = hello.capabilities.includes(PACKED_ROWS);
    log.debug("a watcher came", { node: request.nodeName, version: hello.version.slice(0, VERSION_MAX) });
    const welcome = wire.WatchResponse.encode({ response: { $case: "welcome", value: { version, capabilities: [] } } }).finish();
    this.#sent = this.#send(Buffer.from(welcome));
  }

  #ask({ family: number, instance, revision }: wire.Ask): void {
    const lease = this.#lease;
    if (lease === undefined) throw new ProxyError("invalid_object", "an ask before hello");
    const family = FAMILY_WORDS.read(number);
    if (this.#asked.has(family)) {
      const details = `${family} was asked for again before the answer to the first was read`;
      endWith(this.#call, status.FAILED_PRECONDITION, details, this.#context.traffic);
      return;
    }
    this.#asked.add(family);
    void this.#answer(lease, family, { instance, revision });
  }

  async #answer(lease: ViewLease, family: IPFamily, cursor: Cursor): Promise<void> {
    const { signal } = this.#gone;
    const { bytes, buffers, streams, traffic, semaphore } = this.#context;
    const leave = lease.knows(family, cursor) ? undefined : await semaphore.enter(signal);
    try {
      // Packing pays where others get the same.
      const delivery = await lease.view(family).next(cursor, signal, this.#readsPacked && streams() > 1);
      const encoding: EncodeOptions = {
        partBytes: PART_BYTES,
        encode: (row) => bytes.of(row, streams() > 1),
        pack: (rows) => bytes.packed(rows),
        encodeOwn: (rows) => bytes.own(rows),
        allocate: (length) => buffers.allocate(length),
      };
      const messages = encodeDelivery(delivery, encoding);
      for (let message = messages.next(); message.done !== true;) {
        // Whoever does not read what was sent gets nothing more, and what is not sent is not made.
        await this.#sent;
        if (signal.aborted) return;
        const following = messages.next();
        // Before the last part goes: its reader may ask again at once.
        if (following.done === true) {
          this.#asked.delete(family);
          traffic.changeSet(delivery);
        }
        this.#sent = this.#send(message.value);
        message = following;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!ProxyError.is(error)) throw error;
      this.#fail(error);
    } finally {
      leave?.();
    }
    this.#endWhenAnswered();
  }

  /** End with OK; what was written before goes out first. */
  #endWhenAnswered(): void {
    if (!this.#hasSaidAll || this.#asked.size > 0 || this.#gone.signal.aborted) return;
    this.#gone.abort();
    this.#call.end();
  }

  /** Resolves when the peer's window took it, or the peer is gone. (A stream's "drain" would come 16 messages late.) */
  async #send(bytes: Buffer): Promise<void> {
    const { signal } = this.#gone;
    const written = new Waiters();
    const isOver = written.wait(signal);
    this.#context.traffic.message(bytes.length);
    this.#call.write(bytes, () => {
      this.#context.buffers.release(bytes);
      written.resolve();
    });
    await isOver;
  }

  #fail(error: ProxyError): void {
    if (!this.#gone.signal.aborted) refuse(this.#call, error, this.#context);
  }
}

function decode(bytes: Buffer): wire.WatchRequest {
  try {
    return wire.WatchRequest.decode(bytes);
  } catch (error) {
    throw ProxyError.from(error, "invalid_object", "the message is no turnout.node.v1.WatchRequest");
  }
}
