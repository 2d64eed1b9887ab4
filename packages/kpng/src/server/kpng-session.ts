import { once } from "node:events";
import * as globalv1 from "../gen/kpng/globalv1/globalv1.ts";
import * as localv1 from "../gen/kpng/localv1/localv1.ts";
import { isDNSName, ProxyError, Waiters, type Log } from "@turnout/core";
import { type PeerRights, type Traffic, refuse, type WatchCall, type StreamSlot } from "@turnout/server/serve";
import type { ImageLease, ImageRegistry } from "./image-registry.ts";
import { opsOf, RESET_OP, SYNC_OP, type Item, type ItemChange } from "./kpng-item.ts";

/** What a stream of kpng's needs. */
export interface KpngContext {
  readonly registry: ImageRegistry;
  readonly rights: PeerRights;
  readonly slot: StreamSlot;
  /** The one node that may be asked for; undefined: any. */
  readonly onlyNode: string | undefined;
  readonly traffic: Traffic;
  readonly log: Log;
}

/** What a watcher asks for: a node's state, or the cluster's. */
export type KpngQuestion = "node" | "cluster";

/** So much is handed to a stream at a time. */
const CHUNK_BYTES = 65_536;

/**
 * One watcher of kpng's: each request is a credit for one change set.
 *
 * Edges: a request is read when the one before is answered, so what a client sends ahead waits on its side. Held for a watcher is
 * what it was last sent, as references to items that all watchers share.
 */
export class KpngSession {
  readonly #call: WatchCall;
  readonly #question: KpngQuestion;
  readonly #context: KpngContext;
  readonly #gone = new AbortController();
  readonly #items = new Map<string, Item>();
  #lease: ImageLease | undefined;
  #leasedName: string | undefined;
  /** The image's, when the watcher was last brought to it; undefined: it has its items from another image, or none. */
  #revision: number | undefined;
  #isFirst = true;

  constructor(call: WatchCall, question: KpngQuestion, context: KpngContext) {
    this.#call = call;
    this.#question = question;
    this.#context = context;
  }

  /** Serve until the stream is over. */
  async run(): Promise<void> {
    const call = this.#call;
    const gone = (): void => this.#gone.abort();
    call.on("data", (bytes: Buffer) => {
      call.pause();
      void this.#answer(bytes);
    });
    call.on("end", () => {
      gone();
      call.end();
    });
    // A peer that died gives neither "end" nor "error".
    for (const event of ["cancelled", "close", "error"]) call.on(event, gone);
    if (!this.#gone.signal.aborted) await once(this.#gone.signal, "abort");
    this.#lease?.release();
    this.#items.clear();
  }

  async #answer(bytes: Buffer): Promise<void> {
    const { signal } = this.#gone;
    try {
      this.#look(bytes);
      if (this.#isFirst) await this.#send([RESET_OP]);
      const changes = await this.#changes();
      if (signal.aborted) return;
      await this.#sendAll(changes);
      if (!signal.aborted) this.#call.resume();
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      if (signal.aborted) return;
      refuse(this.#call, error, this.#context);
    }
  }

  /** Hold the image that a request is about. */
  #look(bytes: Buffer): void {
    const name = this.#question === "cluster" ? this.#clusterAsked(bytes) : this.#nodeAsked(bytes);
    if (this.#lease !== undefined && name === this.#leasedName) return;
    const { registry, slot, log } = this.#context;
    slot.assign(name);
    const lease = this.#question === "cluster" ? registry.acquireCluster() : registry.acquireNode(name);
    this.#lease?.release();
    this.#lease = lease;
    this.#leasedName = name;
    this.#revision = undefined;
    log.debug("a watcher of kpng's came", { asks: this.#question === "cluster" ? "the cluster" : `node ${JSON.stringify(name)}` });
  }

  #clusterAsked(bytes: Buffer): string {
    decodeAs("globalv1.GlobalWatchReq", () => globalv1.GlobalWatchReq.decode(bytes));
    const { onlyNode, rights } = this.#context;
    if (onlyNode !== undefined) {
      throw new ProxyError("permission_denied", `only node ${onlyNode} may be asked for here`, { object: "the cluster's state" });
    }
    rights.checkAll();
    return "";
  }

  /** Some of kpng's backends can't say where they are: that is where they may be, or nowhere. */
  #nodeAsked(bytes: Buffer): string {
    const { NodeName } = decodeAs("localv1.WatchReq", () => localv1.WatchReq.decode(bytes));
    const { onlyNode, rights } = this.#context;
    const name = NodeName === "" ? (onlyNode ?? rights.ownNode ?? "") : NodeName;
    if (name !== "" && !isDNSName(name)) {
      throw new ProxyError("invalid_object", "NodeName is no name of a node", { object: JSON.stringify(name.slice(0, 253)) });
    }
    if (onlyNode !== undefined && name !== onlyNode) {
      throw new ProxyError("permission_denied", `only node ${onlyNode} may be asked for here`, { object: `node ${name}` });
    }
    if (name === "") rights.checkAll();
    else rights.check(name);
    return name;
  }

  /** Wait for something to say; the first time, nothing is something. */
  async #changes(): Promise<readonly ItemChange[]> {
    const image = this.#lease?.image;
    const { signal } = this.#gone;
    while (image !== undefined && !signal.aborted) {
      const changes = image.changesFrom(this.#items, this.#revision);
      if (changes !== undefined) this.#revision = image.revision;
      if (changes !== undefined && (changes.length > 0 || this.#isFirst)) return changes;
      await image.news(signal);
    }
    return [];
  }

  async #sendAll(changes: readonly ItemChange[]): Promise<void> {
    const { traffic } = this.#context;
    traffic.answer(changes.length, this.#isFirst);
    this.#isFirst = false;
    let chunk: Buffer[] = [];
    let bytes = 0;
    for (const op of opsOf(changes)) {
      chunk.push(op);
      bytes += op.length;
      if (bytes < CHUNK_BYTES) continue;
      // Whoever does not read what was sent gets nothing more.
      await this.#send(chunk);
      if (this.#gone.signal.aborted) return;
      [chunk, bytes] = [[], 0];
    }
    for (const { path, after } of changes) {
      if (after === undefined) this.#items.delete(path);
      else this.#items.set(path, after);
    }
    await this.#send([...chunk, SYNC_OP]);
  }

  /** Resolves when the peer's window took it, or the peer is gone. */
  async #send(messages: readonly Buffer[]): Promise<void> {
    const { signal } = this.#gone;
    if (signal.aborted) return;
    const written = new Waiters();
    const isOver = written.wait(signal);
    for (const { length } of messages) this.#context.traffic.message(length);
    this.#call.write(messages, () => written.resolve());
    await isOver;
  }
}

function decodeAs<T>(name: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    throw ProxyError.from(error, "invalid_object", `the message is no ${name}`);
  }
}
