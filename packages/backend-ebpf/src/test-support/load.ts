// A client that connects, and sends datagrams, again and again: what a scenario does to the proxy meanwhile must not show. Run as a thread.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

/** Whom the thread asks at port 80, and where it counts. */
export interface LoadData {
  readonly tcp: string;
  readonly udp: string;
  /** [0]: anything but 0 means stop; [1]: connections answered; [2]: datagrams answered; [3]: of all these, how often the endpoint showed itself. */
  readonly shared: Int32Array;
}

/** No answer takes so long. */
const SILENCE_MS = 5_000;

const data = workerData as LoadData;
const { shared } = data;
const failures: string[] = [];

async function ask(): Promise<void> {
  const socket = connect(80, data.tcp);
  try {
    await once(socket, "data", { signal: AbortSignal.timeout(SILENCE_MS) });
    if (socket.remoteAddress !== data.tcp) Atomics.add(shared, 3, 1);
    Atomics.add(shared, 1, 1);
  } finally {
    socket.destroy();
  }
}

/** One socket for all, which isn't connected. */
const udp = createSocket(data.udp.includes(":") ? "udp6" : "udp4");

async function notify(): Promise<void> {
  const answer = once(udp, "message", { signal: AbortSignal.timeout(SILENCE_MS) });
  udp.send("?", 80, data.udp);
  const [, from] = (await answer) as [unknown, { readonly address: string }];
  if (from.address !== data.udp) Atomics.add(shared, 3, 1);
  Atomics.add(shared, 2, 1);
}

while (Atomics.load(shared, 0) === 0) {
  try {
    await ask();
    await notify();
  } catch (error) {
    failures.push(error instanceof Error ? `${error.name} ${error.message}` : String(error));
    await sleep(10);
  }
}
udp.close();
parentPort?.postMessage(failures, []);
