// A thread in a network namespace of its own: servers and clients there, called by messages of agents.ts.
import { closeSync, openSync } from "node:fs";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { c, NETWORK, sure } from "../testing/calls.ts";
import { ask, askAll, askByOne, endpointsOf } from "./clients.ts";
import type { Question } from "./clients.ts";
import { startLoad } from "./start-load.ts";
import type { LoadResult } from "./start-load.ts";

/** The port of all endpoints, as in states.ts. */
const PORT = 8080;

/** Whoever holds a connection waits so long for its server. */
const SILENCE_MS = 800;

/** Upon this a server closes the connection. */
const CLOSE = "close";

/** What an agent can be asked to do. */
export interface Calls {
  /** Have servers at these addresses; each says its own address and the client's, and over TCP then repeats what it gets. */
  serve(addresses: readonly string[]): Promise<void>;
  ask(question: Question): Promise<string>;
  askAll(questions: readonly Question[]): Promise<readonly string[]>;
  askByOne(type: "udp4" | "udp6", questions: readonly Question[]): Promise<readonly string[]>;
  /** Which endpoints answer, see clients.ts. */
  endpointsOf(question: Question, times: number): Promise<readonly string[]>;
  /** Open a TCP connection that stays; gives what its server says, or `silence`. */
  hold(question: Question): Promise<string>;
  /** Send so many bytes by it; gives how many come back. */
  echo(bytes: number): Promise<number>;
  /** Ask a service by TCP and another by UDP all the time, see start-load.ts. */
  startLoad(tcp: string, udp: string): Promise<void>;
  /** Stop that. */
  endLoad(): Promise<LoadResult>;
  /** End it: have the server close it, or reset it. */
  end(how: "closed" | "reset"): Promise<void>;
}

function enter(path: string): void {
  const fd = openSync(path, "r");
  sure(c.setns(fd, NETWORK), path);
  closeSync(fd);
}

let held: Socket | undefined;
let load: (() => Promise<LoadResult>) | undefined;

function connection(): Socket {
  if (held === undefined) throw new Error("there is a connection");
  return held;
}

const calls: Calls = {
  ask,
  askAll,
  askByOne,
  endpointsOf,
  async serve(addresses) {
    for (const own of addresses) {
      const server = createServer((socket) => {
        socket.on("error", () => undefined);
        socket.write(`${own} to ${socket.remoteAddress ?? "nobody"}`);
        socket.on("data", (said: Buffer) => (said.toString() === CLOSE ? socket.end() : socket.write(said)));
      }).listen(PORT, own);
      const udp = createSocket(own.includes(":") ? "udp6" : "udp4");
      udp.on("message", (said, { address, port }) => udp.send(`${own} to ${address}`.padEnd(said.length), port, address));
      udp.bind(PORT, own);
      await Promise.all([once(server, "listening"), once(udp, "listening")]);
    }
  },
  async hold({ address, port, fromPort }) {
    held = connect({ host: address, port, ...(fromPort === undefined ? {} : { localPort: fromPort }) });
    held.on("error", () => undefined);
    return Promise.race([once(held, "data").then(([said]) => String(said)), sleep(SILENCE_MS, "silence")]);
  },
  async startLoad(tcp, udp) {
    load = await startLoad(tcp, udp);
  },
  endLoad() {
    if (load === undefined) throw new Error("there is load");
    return load();
  },
  async end(how) {
    const socket = connection();
    const closed = once(socket, "close");
    if (how === "closed") {
      socket.write(CLOSE);
      await Promise.race([closed, sleep(SILENCE_MS)]);
    }
    if (socket.connecting) socket.destroy();
    else if (!socket.destroyed) socket.resetAndDestroy();
    await closed;
  },
  async echo(bytes) {
    const socket = connection();
    let back = 0;
    const all = new Promise<number>((resolve) => {
      const timer = setTimeout(() => resolve(back), 5000);
      socket.on("data", (said: Buffer) => {
        back += said.length;
        if (back < bytes) return;
        clearTimeout(timer);
        resolve(back);
      });
    });
    socket.write(Buffer.alloc(bytes));
    return all;
  },
};

// Threads that a thread starts are where it is.
enter(workerData as string);
parentPort?.on("message", ({ id, name, args }: { readonly id: number; readonly name: keyof Calls; readonly args: readonly unknown[] }) => {
  const call = calls[name] as (...all: readonly unknown[]) => Promise<unknown>;
  call(...args).then(
    (value) => parentPort?.postMessage({ id, value }, []),
    (error: unknown) => parentPort?.postMessage({ id, error: String(error) }, []),
  );
});
parentPort?.postMessage("there", []);
