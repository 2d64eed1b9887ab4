import { systemClock } from "@turnout/core/process";
import type { Store } from "@turnout/core";
import { createStoreProvider, serveNodeState } from "@turnout/server/serve";
import type { NodeStateServer, NodeStateServerOptions } from "@turnout/server/serve";
import { monotonicMs } from "../crowd.ts";
import type { Harness } from "../line-channel.ts";
import { memoryInUse } from "../heap-size.ts";
import type { MemoryInUse } from "../heap-size.ts";
import { createBenchLog, createStore, fail, fillStore } from "../subject.ts";
import { NODES, sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { STRIDE } from "./backend-run.ts";

/** What a node-state server is to serve and to go through. */
export interface StateServerParameters {
  readonly socket: string;
  readonly shape: Shape;
  /** One-endpoint changes, each when the harness says so. */
  readonly changes: number;
  /** Then one change after another, ms; 0: none. */
  readonly stormMs: number;
}

/** What a node-state server saw of itself. */
export interface StateServerReport {
  /** Served, and told to the first watchers. */
  readonly shared: MemoryInUse;
  /** With all watchers. */
  readonly all: MemoryInUse;
  /** CPU time of telling all watchers but the first their first states, ms. */
  readonly reportingCpuMs: number;
  /** Most that was resident until all were told, bytes. */
  readonly peakBytes: number;
  /** When each change entered the store, ms of the machine's monotonic clock. */
  readonly changedMs: readonly number[];
  /** CPU time of each change, from its event until the next phase, ms. */
  readonly cpuMs: readonly number[];
  /** Rows encoded, in each change. */
  readonly rowsEncoded: readonly number[];
}

/**
 * Serve a store over a unix socket.
 *
 * Phases: `serving`; `shared` when it has looked at its memory with the first watchers; `all` with all of them; `quiet` before
 * each change and `changed` after it; `storm` before changes that wait for nobody.
 */
export async function stateServer(
  { socket, shape, changes, stormMs }: StateServerParameters,
  harness: Harness,
): Promise<StateServerReport> {
  const store = createStore();
  await fillStore(store, shape, NODES);
  // Many watchers, also of one node, are what is measured.
  const limits = { streamsMax: 10_000, streamsOfClientMax: 10_000, requestsMax: 10_000 };
  const server = await serveOn(socket, createStoreProvider(store, fail), { limits });
  await harness.reached("serving");
  const shared = await memoryInUse();
  const reported = process.cpuUsage();
  await harness.reached("shared");
  const reporting = process.cpuUsage(reported);
  const peakBytes = process.resourceUsage().maxRSS * 1024;
  const all = await memoryInUse();
  await harness.reached("all");
  const changedMs: number[] = [];
  const cpuMs: number[] = [];
  const rowsEncoded: number[] = [];
  for (let change = 0; change < changes; change++) {
    await harness.reached("quiet");
    const cpu = process.cpuUsage();
    const encoded = server.stats.rowsEncoded;
    const index = (change * STRIDE) % shape.services;
    const object = sliceObject(index, shape, { unready: change % shape.endpoints });
    changedMs.push(monotonicMs());
    store.upsert("EndpointSlice", object);
    // The harness says go when every watcher has it.
    await harness.reached("changed");
    const { user, system } = process.cpuUsage(cpu);
    cpuMs.push((user + system) / 1000);
    rowsEncoded.push(server.stats.rowsEncoded - encoded);
  }
  if (stormMs > 0) {
    await harness.reached("storm");
    await changeWithoutEnd(store, shape, stormMs);
  }
  await server.close();
  return { shared, all, reportingCpuMs: (reporting.user + reporting.system) / 1000, peakBytes, changedMs, cpuMs, rowsEncoded };
}

/**
 * One change in each turn of the event loop, of one Service: whoever is slower gets the latest. With all Services in turn the
 * answers would grow with the time they take, and rows be counted instead of messages.
 */
async function changeWithoutEnd(store: Store, shape: Shape, forMs: number): Promise<void> {
  // Past the end of the count: its edges are the watchers'.
  const until = monotonicMs() + forMs + 1_000;
  for (let change = 0; monotonicMs() < until; change++) {
    store.upsert("EndpointSlice", sliceObject(0, shape, { unready: change % shape.endpoints }));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Serve a provider's rows on a unix socket. */
export function serveOn(
  socket: string,
  provider: NodeStateServerOptions["provider"],
  more: Partial<NodeStateServerOptions> = {},
): Promise<NodeStateServer> {
  const common = { version: "bench", clock: systemClock(), log: createBenchLog() };
  return serveNodeState({ provider, listen: [`unix://${socket}`], ...common, ...more });
}
