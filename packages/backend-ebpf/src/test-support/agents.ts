// Threads of this process in other network namespaces (agent.ts), as objects.
import { Worker } from "node:worker_threads";
import type { Calls } from "./agent.ts";
import { pathOf } from "./network.ts";
import type { Place } from "./network.ts";

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** Start a thread at a place; it ends with this process. */
export function startAgent(place: Place): Calls {
  const worker = new Worker(new URL("agent.ts", import.meta.url), { workerData: pathOf(place) });
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
