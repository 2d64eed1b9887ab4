import type { Harness } from "../line-channel.ts";
import { NODE_VIEW } from "../subject.ts";
import { openConnection, openWatcher } from "../watch-client.ts";
import type { WatchConnection } from "../watch-client.ts";
import { monotonicMs } from "./state-server.ts";

/** Who watches. */
export interface WatchersParameters {
  readonly socket: string;
  /** Watchers of nodes that are not counted, told first: what all share is there afterwards. */
  readonly first: number;
  readonly watchers: number;
  /** Each watches a node of its own, or all the same one. */
  readonly nodes: "different" | "same";
  /** Streams of one connection; a node-state server takes 100 at most. */
  readonly streamsPerConnection: number;
  readonly changes: number;
  /** How long to count answers while changes never end, ms; 0: not at all. */
  readonly stormMs: number;
}

/** What the watchers saw. */
export interface WatchersReport {
  /** From the first connect until all had their first state, ms; for the watchers that count. */
  readonly startMs: number;
  /** For each change, when each watcher had it, ms of the machine's monotonic clock. */
  readonly arrivalsMs: readonly (readonly number[])[];
  /** Most rows set and deleted in one change set of a change. */
  readonly operationsMax: number;
  /** Change sets a second during the storm, all watchers together. */
  readonly stormPerSecond: number;
}

/** IPv4, as on the wire. */
const COUNTED_FAMILY = 1;

/**
 * Watch a node-state server as so many nodes.
 *
 * Phases: `first` when those not counted are told; `told` when all are; `watching` before and `heard` after each change, when all
 * have it; `storm` before counting.
 */
export async function watchers(parameters: WatchersParameters, harness: Harness): Promise<WatchersReport> {
  const crowd = new Crowd(parameters.socket, parameters.streamsPerConnection);
  await crowd.open(Array.from({ length: parameters.first }, (_, index) => `early-${index}`));
  await harness.reached("first");
  const names = Array.from({ length: parameters.watchers }, (_, index) => `n${parameters.nodes === "same" ? 0 : index}`);
  const startMs = monotonicMs();
  await crowd.open(names);
  const reportedMs = monotonicMs() - startMs;
  await harness.reached("told");
  const arrivalsMs: (readonly number[])[] = [];
  for (let change = 0; change < parameters.changes; change++) {
    const heard = crowd.change();
    await harness.reached("watching");
    arrivalsMs.push((await heard).slice(parameters.first));
    await harness.reached("heard");
  }
  const { operationsMax } = crowd;
  let stormPerSecond = 0;
  if (parameters.stormMs > 0) {
    await harness.reached("storm");
    const [heard, fromMs] = [crowd.heard, monotonicMs()];
    await new Promise((resolve) => setTimeout(resolve, parameters.stormMs));
    stormPerSecond = ((crowd.heard - heard) / (monotonicMs() - fromMs)) * 1000;
  }
  crowd.close();
  return { startMs: reportedMs, arrivalsMs, operationsMax, stormPerSecond };
}

/** Watchers that are told things together. */
class Crowd {
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
  operationsMax = 0;
  /** Answers about IPv4 so far. */
  heard = 0;

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
