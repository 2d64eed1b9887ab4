import { setTimeout as sleep } from "node:timers/promises";
import { attempt, createKeepAlive } from "./attempts.ts";
import type { Attempt, BurstRequest, LoadRequest, Outcome, Tally } from "./protocol.ts";

/** Sum attempts up; grows with their number. */
export interface Counter {
  add(one: Attempt): void;
  tally(): Tally;
}

/** Make an empty counter. */
export function createCounter(): Counter {
  const failed: Partial<Record<Outcome, number>> = {};
  const servers: Record<string, number> = {};
  const clients: Record<string, number> = {};
  const latenciesMs: number[] = [];
  let attempts = 0;
  return {
    add: (one) => {
      attempts += 1;
      if (one.outcome !== "ok") {
        failed[one.outcome] = (failed[one.outcome] ?? 0) + 1;
        return;
      }
      const { server = "", client = "" } = one;
      servers[server] = (servers[server] ?? 0) + 1;
      clients[client] = (clients[client] ?? 0) + 1;
      latenciesMs.push(one.latencyMs);
    },
    tally: () => {
      const sorted = latenciesMs.toSorted((a, b) => a - b);
      const copy = { failed: { ...failed }, servers: { ...servers }, clients: { ...clients } };
      return { attempts, ok: sorted.length, ...copy, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) };
    },
  };
}

function quantile(sorted: readonly number[], fraction: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
}

/** Make `count` attempts, `concurrency` at a time. */
export async function burst(request: BurstRequest): Promise<Tally> {
  const counter = createCounter();
  const keepAlive = request.transport === "HTTP" ? createKeepAlive() : undefined;
  let left = request.count;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      counter.add(await attempt(request, keepAlive));
    }
  };
  await Promise.all(Array.from({ length: Math.min(request.concurrency ?? 8, request.count) }, worker));
  keepAlive?.destroy();
  return counter.tally();
}

/** A load that runs. */
export interface Load {
  peek(): Tally;
  /** Let every attempt under way end, then sum up. @throws {Error} a caller's mistake that ended a worker. */
  stop(): Promise<Tally>;
}

/** Make attempts until stopped. */
export function startLoad(request: LoadRequest): Load {
  const counter = createCounter();
  const keepAlive = request.transport === "HTTP" ? createKeepAlive() : undefined;
  let isRunning = true;
  const worker = async (): Promise<void> => {
    while (isRunning) {
      counter.add(await attempt(request, keepAlive));
      await sleep(request.pauseMs ?? 2);
    }
  };
  // Settled, not all: a worker that fails must not end the process before stop() is there to throw it.
  const workers = Promise.allSettled(Array.from({ length: request.concurrency ?? 8 }, worker));
  return {
    peek: () => counter.tally(),
    stop: async () => {
      isRunning = false;
      const failed = (await workers).find((one) => one.status === "rejected");
      keepAlive?.destroy();
      if (failed !== undefined) throw failed.reason;
      return counter.tally();
    },
  };
}
