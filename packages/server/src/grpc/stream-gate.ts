import { ProxyError, type Clock, type Issue } from "@turnout/core";
import type { PeerRights } from "./peer-rights.ts";

/** How much there is room for. */
export interface StreamGateOptions {
  /** Streams that have said what they want. */
  readonly streamsMax: number;
  /** Streams of one client, or, of one that may ask for any node, for one node; those that have said nothing included. */
  readonly streamsOfClientMax: number;
  readonly clock: Clock;
  /** Hears of clients that want more than there is. */
  readonly report: (issue: Issue) => void;
}

/** A stream's place at the gate. */
export interface StreamSlot {
  /**
   * It has said what it wants, the state of a node or "" for all of the cluster, and counts from now on. Again: it wants something else.
   * @throws {ProxyError} `limit_reached` when there is no room.
   */
  assign(nodeName: string): void;
  /** It is over. */
  leave(): void;
}

/** Streams that have said nothing yet; one more ends the one that has been silent for longest. */
const SILENT_MAX = 1_000;
/** For so long a stream may be silent. */
const HELLO_MS = 10_000;

/**
 * Counts streams, so that nobody has more than their share of them.
 *
 * Shape: a stream is silent until its first message, and counts after it. Silent ones have a room and a deadline of their own: when the room is full the oldest
 * goes, so those who say what they want at once get in, whoever else says nothing.
 * Edges: a client that may ask for any node (a relay, or whoever reaches a socket) may have many, for it speaks for many: its share is by node.
 */
export class StreamGate {
  readonly #options: StreamGateOptions;
  /** What ends them, oldest first. */
  readonly #silent = new Map<StreamSlot, (error: ProxyError) => void>();
  readonly #shares = new Map<string, number>();
  /** Who was reported to want more; until they have nothing left. */
  readonly #greedy = new Set<string>();
  #streams = 0;

  constructor(options: StreamGateOptions) {
    this.#options = options;
  }

  /** Streams that have said what they want. */
  get streams(): number {
    return this.#streams;
  }

  /** Streams that have said nothing yet. */
  get silent(): number {
    return this.#silent.size;
  }

  /**
   * Take in a stream of a client; `end` is called when it was silent for too long.
   * @throws {ProxyError} `limit_reached` when the client has its share.
   */
  arrive({ client, mayAskForAll }: PeerRights, end: (error: ProxyError) => void): StreamSlot {
    const gone = new AbortController();
    let share = mayAskForAll ? undefined : client;
    let isCounted = false;
    if (share !== undefined) this.#reserve(share);
    const slot: StreamSlot = {
      assign: (nodeName) => {
        if (!isCounted) this.#count();
        isCounted = true;
        this.#silent.delete(slot);
        if (!mayAskForAll) return;
        const next = `${client} for ${nodeName === "" ? "the cluster" : `node ${nodeName}`}`;
        if (next === share) return;
        this.#reserve(next);
        if (share !== undefined) this.#release(share);
        share = next;
      },
      leave: () => {
        gone.abort();
        this.#silent.delete(slot);
        if (share !== undefined) this.#release(share);
        if (isCounted) this.#streams -= 1;
      },
    };
    this.#makeSpace();
    this.#silent.set(slot, end);
    void this.#options.clock.sleep(HELLO_MS, gone.signal).then(() => this.#endSilent(slot, "no first message came"));
    return slot;
  }

  #makeSpace(): void {
    const [oldest] = this.#silent.keys();
    if (oldest !== undefined && this.#silent.size >= SILENT_MAX) this.#endSilent(oldest, "no first message came, and others wait");
  }

  #endSilent(slot: StreamSlot, what: string): void {
    const end = this.#silent.get(slot);
    this.#silent.delete(slot);
    end?.(new ProxyError("timed_out", what, { hint: "it says whose state is wanted" }));
  }

  #count(): void {
    const { streamsMax, report } = this.#options;
    if (this.#streams >= streamsMax) {
      const what = `this node-state server serves ${streamsMax} streams already, and no more at a time`;
      report({ object: "serve", what, hint: "run another node-state server; turnout_api_watchers counts streams" });
      throw new ProxyError("limit_reached", what);
    }
    this.#streams += 1;
  }

  #reserve(share: string): void {
    const { streamsOfClientMax: most, report } = this.#options;
    const taken = this.#shares.get(share) ?? 0;
    if (taken < most) {
      this.#shares.set(share, taken + 1);
      return;
    }
    const hint = "let the others end; serve --streams-per-client allows more";
    if (!this.#greedy.has(share))
      report({ object: share, what: `more streams than one client may have are refused: it has ${most}`, hint });
    this.#greedy.add(share);
    throw new ProxyError("limit_reached", `there are ${most} streams already, and no more at a time`, { object: share, hint });
  }

  #release(share: string): void {
    const left = (this.#shares.get(share) ?? 1) - 1;
    if (left > 0) {
      this.#shares.set(share, left);
      return;
    }
    this.#shares.delete(share);
    this.#greedy.delete(share);
  }
}
