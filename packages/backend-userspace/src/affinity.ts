/** More clients than this aren't remembered: the one that was silent longest is forgotten. */
const CLIENTS_MAX = 100_000;

interface Kept {
  readonly row: string;
  readonly endpoint: string;
  readonly untilMs: number;
}

/** Remembers to which endpoint of a row a client was sent. */
export class AffinityTable {
  readonly #nowMs: () => number;
  readonly #max: number;
  /** By row and client, in the order of their latest connections. */
  readonly #kept = new Map<string, Kept>();

  constructor(nowMs: () => number, max: number = CLIENTS_MAX) {
    this.#nowMs = nowMs;
    this.#max = max;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** The endpoint (`ip:port`) a client was sent to, while that is to be remembered. */
  find(row: string, client: string): string | undefined {
    const kept = this.#kept.get(keyOf(row, client));
    return kept !== undefined && kept.untilMs > this.#nowMs() ? kept.endpoint : undefined;
  }

  /** A connection was made: remember it for so many seconds from now. */
  note(row: string, client: string, endpoint: string, seconds: number): void {
    const key = keyOf(row, client);
    this.#kept.delete(key);
    this.#kept.set(key, { row, endpoint, untilMs: this.#nowMs() + seconds * 1000 });
    if (this.#kept.size > this.#max) for (const oldest of this.#kept.keys()) return void this.#kept.delete(oldest);
  }

  /** Let go of clients of endpoints a row no longer has: they are not sent back should those return. */
  retain(row: string, endpoints: ReadonlySet<string>): void {
    for (const [key, kept] of this.#kept) if (kept.row === row && !endpoints.has(kept.endpoint)) this.#kept.delete(key);
  }

  /** Forget what has run out. */
  sweep(): void {
    const nowMs = this.#nowMs();
    for (const [key, { untilMs }] of this.#kept) if (untilMs <= nowMs) this.#kept.delete(key);
  }
}

function keyOf(row: string, client: string): string {
  return `${row} ${client}`;
}
