// Threads of this process in other network namespaces (agent.ts), as objects.
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Calls } from "./agent.ts";
import { pathOf } from "./network.ts";
import type { Place } from "./network.ts";

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** Start a thread at each of these places; they end with this process. */
export async function startAgents<const P extends readonly Place[]>(places: P): Promise<{ readonly [I in keyof P]: Calls }> {
  return (await Promise.all(places.map(startAgent))) as { readonly [I in keyof P]: Calls };
}

/** The thread is there when it says so: Node aborts a process that ends while one of its threads loads koffi. */
async function startAgent(place: Place): Promise<Calls> {
  const worker = new Worker(new URL("agent.ts", import.meta.url), { workerData: pathOf(place) });
  await once(worker, "message");
  const waiting = new Map<number, (answer: Answer) => void>();
  let count = 0;
  worker.on("message", (answer: Answer) => waiting.get(answer.id)?.(answer));
  const call =
    (name: keyof Calls) =>
    (...args: readonly unknown[]): Promise<never> =>
      new Promise((resolve, reject) => {
        const id = (count += 1);
        waiting.set(id, ({ value, error }) => (error === undefined ? resolve(value as never) : reject(new Error(`${place}: ${error}`))));
        worker.postMessage({ id, name, args }, []);
      });
  return {
    serve: call("serve"),
    ask: call("ask"),
    askAll: call("askAll"),
    askByOne: call("askByOne"),
    endpointsOf: call("endpointsOf"),
    hold: call("hold"),
    echo: call("echo"),
    end: call("end"),
    startLoad: call("startLoad"),
    endLoad: call("endLoad"),
  };
}
