import { NODE_VIEW } from "./subject.ts";
import { openConnection, openWatcher } from "./watch-client.ts";
import type { WatchConnection } from "./watch-client.ts";

/** IPv4, as on the wire. */
const COUNTED_FAMILY = 1;

/** The machine's monotonic clock, ms: the same in all processes. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Watchers that are told things together. */
export class Crowd {
  readonly #socket: string;
  readonly #streamsPerConnection: number;
  readonly #connections: WatchConnection[] = [];
  #opened = 0;
  /** When each watcher had its latest answer about IPv4. */
  readonly #arrivedMs: number[] = [];
  #missing = 0;
  #complete: () => void = () => undefined;
  /** Rows set and deleted in the answer being read. */
  readonly #operations: number[] = [];
  /** Most rows set and deleted in one answer since all had theirs. */
  operationsMax = 0;
  /** Answers about IPv4 so far. */
  heard = 0;

  /** `socket`: of a node-state server; it takes 100 streams of a connection at most. */
  constructor(socket: string, streamsPerConnection: number) {
    this.#socket = socket;
    this.#streamsPerConnection = streamsPerConnection;
  }

  /** Open a watcher of each node; resolves when each has its state. */
  async open(nodes: readonly string[]): Promise<void> {
    const reported = this.#expect(nodes.length);
    for (const node of nodes) this.#open(node);
    if (nodes.length > 0) await reported;
    this.operationsMax = 0;
  }

  /** Resolves when everybody has one more answer, to when each had it. */
  async change(): Promise<readonly number[]> {
    await this.#expect(this.#opened);
    return [...this.#arrivedMs];
  }

  /** End all of them. */
  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  #expect(answers: number): Promise<void> {
    this.#missing = answers;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#complete = resolve;
    return promise;
  }

  #open(node: string): void {
    const index = this.#opened++;
    if (index % this.#streamsPerConnection === 0) this.#connections.push(openConnection(this.#socket));
    const connection = this.#connections.at(-1) as WatchConnection;
    this.#operations[index] = 0;
    openWatcher(connection, node, NODE_VIEW.settings, ({ family, more, set, deleted }) => {
      if (family !== COUNTED_FAMILY) return;
      this.#operations[index] = (this.#operations[index] ?? 0) + set + deleted;
      if (more) return;
      this.operationsMax = Math.max(this.operationsMax, this.#operations[index] ?? 0);
      this.#operations[index] = 0;
      this.#arrivedMs[index] = monotonicMs();
      this.heard += 1;
      this.#missing -= 1;
      if (this.#missing === 0) this.#complete();
    });
  }
}
