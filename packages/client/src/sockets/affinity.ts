import { Shares } from "./shares.ts";

/** More clients than this aren't remembered: of the Service that has most, the one that was silent longest is forgotten. */
const CLIENTS_MAX = 100_000;

interface Kept {
  readonly row: string;
  readonly endpoint: string;
  readonly untilMs: number;
  /** Connections that are being made to the endpoint and decide whether this is to be kept; 0: one was made. */
  readonly proposals: number;
  /** What counts again when none of them is made. */
  readonly before: Kept | undefined;
}

/** Remembers to which endpoint of a row a client was sent. */
export class AffinityTable {
  readonly #nowMs: () => number;
  /** By row and client. */
  readonly #kept = new Map<string, Kept>();
  /** Their keys. */
  readonly #shares: Shares<string>;

  constructor(nowMs: () => number, max: number = CLIENTS_MAX) {
    this.#nowMs = nowMs;
    this.#shares = new Shares(max);
  }

  get size(): number {
    return this.#kept.size;
  }

  /** The endpoint (`ip:port`) a client was sent to, or is being sent to, while that is to be remembered. */
  find(row: string, client: string): string | undefined {
    return this.#valid(keyOf(row, client))?.endpoint;
  }

  /** A connection is being made: others of this client that come meanwhile go the same way. */
  propose(row: string, client: string, endpoint: string, seconds: number): void {
    const key = keyOf(row, client);
    const kept = this.#valid(key);
    if (kept?.endpoint === endpoint) {
      if (kept.proposals > 0) this.#kept.set(key, { ...kept, proposals: kept.proposals + 1 });
      return;
    }
    const before = kept !== undefined && kept.proposals > 0 ? kept.before : kept;
    this.#put(key, { row, endpoint, untilMs: this.#nowMs() + seconds * 1000, proposals: 1, before });
  }

  /** That connection was not made: what was before it counts again. */
  withdraw(row: string, client: string, endpoint: string): void {
    const key = keyOf(row, client);
    const kept = this.#kept.get(key);
    if (kept === undefined || kept.endpoint !== endpoint || kept.proposals === 0) return;
    if (kept.proposals > 1) this.#kept.set(key, { ...kept, proposals: kept.proposals - 1 });
    else if (kept.before === undefined) this.#forget(key, row);
    else this.#kept.set(key, kept.before);
  }

  /** A connection was made: remember it for so many seconds from now. */
  note(row: string, client: string, endpoint: string, seconds: number): void {
    this.#put(keyOf(row, client), { row, endpoint, untilMs: this.#nowMs() + seconds * 1000, proposals: 0, before: undefined });
  }

  /** Let go of clients of endpoints a row no longer has: they are not sent back should those return. */
  retain(row: string, endpoints: ReadonlySet<string>): void {
    for (const [key, kept] of this.#kept) if (kept.row === row && !endpoints.has(kept.endpoint)) this.#forget(key, row);
  }

  /** Forget what has run out. */
  sweep(): void {
    const nowMs = this.#nowMs();
    for (const [key, { row, untilMs }] of this.#kept) if (untilMs <= nowMs) this.#forget(key, row);
  }

  #valid(key: string): Kept | undefined {
    const kept = this.#kept.get(key);
    return kept !== undefined && kept.untilMs > this.#nowMs() ? kept : undefined;
  }

  #put(key: string, kept: Kept): void {
    const { row } = kept;
    const [oldest] = this.#kept.has(key) ? [] : (this.#shares.giverFor(row)?.held ?? []);
    if (oldest !== undefined) this.#forget(oldest, this.#kept.get(oldest)?.row ?? row);
    this.#kept.set(key, kept);
    this.#shares.add(row, key);
  }

  #forget(key: string, row: string): void {
    this.#kept.delete(key);
    this.#shares.delete(row, key);
  }
}

function keyOf(row: string, client: string): string {
  return `${row} ${client}`;
}
