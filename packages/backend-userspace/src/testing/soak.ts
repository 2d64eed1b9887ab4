import { systemClock } from "@turnout/core/process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { BackendMetric } from "@turnout/core";
import { fixtureState, TestProxy } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { createFakeExec, createFakeLog, createFakeNetlink } from "@turnout/host/testing";
import { userspaceModule } from "../module.ts";
import { createNodeSockets } from "@turnout/client/sockets";
import type { UserspaceWorld } from "../world.ts";

/** What a process holds, after its garbage is collected. Bytes. */
export interface Holdings {
  readonly heapUsed: number;
  readonly rss: number;
  /** Sockets, servers and timers that keep the process alive, by kind. */
  readonly handles: Readonly<Record<string, number>>;
  /** What the backend says it holds: connections and sessions. */
  readonly numbers: Readonly<Record<string, number>>;
}

/** How a soak went. */
export interface SoakReport {
  readonly connections: number;
  readonly sessions: number;
  readonly seconds: number;
  /** How clients fared: `answered`, `reset` and so on. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** After a warm-up, with nothing going on. */
  readonly before: Holdings;
  /** In the same state again. */
  readonly after: Holdings;
}

/** What is done. */
export interface SoakOptions {
  /** TCP connections; a tenth as many UDP sessions. */
  readonly connections: number;
  readonly concurrency?: number;
  readonly progress?: (done: number) => void;
}

const LOOPBACK = "127.0.0.1";
const CONCURRENCY = 64;
const WARM_UP = 2_000;
const SESSIONS_PER_CONNECTION = 0.1;
const UDP_IDLE_SECONDS = 0.2;
/** What clients do, in turn. Those that are reset in the middle are what leaks are made of. */
const WAYS = ["ask", "ask", "half-close", "leave", "reset", "ask to be reset"] as const;

/**
 * Have so many clients come and go through the real backend on loopback, and look what is left of them.
 *
 * Shape: clients, servers and proxy in this process. One of three endpoints refuses, so that a third of the connections is dialled twice.
 */
export async function soak({ connections, concurrency = CONCURRENCY, progress }: SoakOptions): Promise<SoakReport> {
  const servers = [await startServer(), await startServer()];
  const udpServer = createSocket("udp4", (data, { port, address }) => udpServer.send(data, port, address));
  await new Promise<void>((done) => udpServer.bind(0, LOOPBACK, done));
  const stage = await openBackend([...servers.map(portOf), await freePort()], udpServer.address().port);
  const outcomes: Record<string, number> = {};
  const run = async (count: number): Promise<void> => {
    await inParallel(count, concurrency, async (index) => {
      const outcome = await visit(stage.tcpPort, WAYS[index % WAYS.length] ?? "ask");
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      if (index % 10_000 === 0) progress?.(index);
    });
    await inParallel(Math.round(count * SESSIONS_PER_CONNECTION), concurrency, () => datagram(stage.udpPort));
  };
  try {
    await run(Math.min(WARM_UP, connections));
    for (const key of Object.keys(outcomes)) delete outcomes[key];
    const before = await stage.holdings();
    const startMs = performance.now();
    await run(connections);
    const seconds = (performance.now() - startMs) / 1000;
    const sessions = Math.round(connections * SESSIONS_PER_CONNECTION);
    return { connections, sessions, seconds, outcomes, before, after: await stage.holdings() };
  } finally {
    await stage.close();
    for (const server of servers) server.close();
    udpServer.close();
  }
}

interface SoakStage {
  readonly tcpPort: number;
  readonly udpPort: number;
  /** Wait until nothing goes on, and look. */
  holdings(): Promise<Holdings>;
  close(): Promise<void>;
}

async function openBackend(endpointPorts: readonly number[], udpEndpoint: number): Promise<SoakStage> {
  const [tcpPort, udpPort] = [await freePort(), await freePort()];
  const fixtures: readonly ServiceFixture[] = [
    { name: "web", number: 10, remote: endpointPorts.length },
    { name: "echo", number: 11, protocol: "UDP", remote: 1 },
  ];
  const state = fixtureState(fixtures, { family: "IPv4" });
  const endpoints = [...state.rows.values()].flatMap((row) => row.endpoints);
  const raw = {
    map: [`shop/web:main=${LOOPBACK}:${tcpPort}`, `shop/echo:main=${LOOPBACK}:${udpPort}`],
    // Endpoints of rows are never on loopback.
    "endpoint-map": [...endpointPorts, udpEndpoint].map((port, index) => `${endpoints[index]?.ip}:8080=${LOOPBACK}:${port}`),
    "udp-idle-timeout": UDP_IDLE_SECONDS,
    "own-addresses": false,
  };
  const world: UserspaceWorld = {
    exec: createFakeExec([]),
    netlink: createFakeNetlink(),
    clock: systemClock(),
    log: createFakeLog(),
    sockets: createNodeSockets(),
    random: Math.random,
    canOwnAddresses: () => Promise.resolve(false),
  };
  const dataplane = await userspaceModule.open(userspaceModule.parseOptions(raw), world, new AbortController().signal);
  const backend = dataplane.family("IPv4");
  const host = { addresses: { IPv4: [LOOPBACK], IPv6: [] }, canOwnAddresses: false };
  const { failed } = await new TestProxy(backend, { host, stateOf: () => state, nowMs: Date.now }).apply(state);
  for (const error of failed?.values() ?? []) throw error;
  const numbers = (): Readonly<Record<string, number>> =>
    Object.fromEntries(
      ((backend.metrics?.() ?? []) as readonly BackendMetric[]).flatMap(({ name, kind, value }) =>
        kind === "gauge" ? [[name, value]] : [],
      ),
    );
  return {
    tcpPort,
    udpPort,
    holdings: async () => {
      await waitUntil(() => Object.values(numbers()).every((value) => value === 0));
      return await holdings(numbers());
    },
    close: () => dataplane.close(AbortSignal.timeout(1_000)),
  };
}

/** A server that says what it is told, ends with its client, and resets who asks for it. */
async function startServer(): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (data) => void (data[0] === RESET_ME ? socket.resetAndDestroy() : socket.write(data)));
    socket.on("end", () => socket.end());
  });
  server.listen(0, LOOPBACK, 4_096);
  await once(server, "listening");
  return server;
}

const RESET_ME = 0x52;
const PLAIN = 0x70;

/** Be one client; says how it went. */
function visit(port: number, way: (typeof WAYS)[number]): Promise<string> {
  return new Promise((resolve) => {
    const socket: Socket = connect({ host: LOOPBACK, port, noDelay: true, allowHalfOpen: true });
    let got = 0;
    socket.once("error", () => undefined);
    socket.once("close", (hadError) =>
      resolve(way === "leave" || way === "reset" ? way : hadError ? "reset" : got > 0 ? "answered" : "unanswered"),
    );
    socket.once("connect", () => {
      if (way === "leave") socket.destroy();
      else if (way === "half-close") socket.end(Buffer.alloc(1_000, PLAIN));
      else socket.write(Buffer.alloc(100, way === "ask to be reset" ? RESET_ME : PLAIN));
    });
    socket.on("data", (data) => {
      got += data.length;
      if (way === "reset") socket.resetAndDestroy();
      else if (way === "ask") socket.end();
    });
    socket.on("end", () => socket.end());
  });
}

/** Be one UDP client. */
async function datagram(port: number): Promise<void> {
  const socket = createSocket("udp4");
  await new Promise<void>((done) => {
    // What is lost is lost.
    const timer = setTimeout(done, 1_000);
    socket.once("message", () => {
      clearTimeout(timer);
      done();
    });
    socket.send("x", port, LOOPBACK);
  });
  socket.close();
}

async function inParallel(count: number, concurrency: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, LOOPBACK);
  await once(server, "listening");
  const port = portOf(server);
  server.close();
  await once(server, "close");
  return port;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** Wait until something is so, for a few seconds at most. */
async function waitUntil(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < 200 && !isSo(); tries++) await new Promise((resolve) => setTimeout(resolve, 25));
  // Closed handles go with the next turn of the loop.
  await new Promise((resolve) => setTimeout(resolve, 50));
}

async function holdings(numbers: Holdings["numbers"]): Promise<Holdings> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let count = 0; count < 4; count++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const handles: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1;
  const { heapUsed, rss } = process.memoryUsage();
  return { heapUsed, rss, handles, numbers };
}
