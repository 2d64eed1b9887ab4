import { createSocket } from "node:dgram";
import type { Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { Socket } from "node:net";
import type { Harness } from "../line-channel.ts";
import { TARGET_PORT } from "../workload.ts";
import { connectOnce } from "./connect-ends.ts";

/** What is asked for, and by which protocol. */
export interface TrafficTarget {
  readonly name: string;
  readonly protocol: "TCP" | "UDP";
  readonly address: string;
  readonly port: number;
}

/** What a client does to each target in turn, round after round. */
export interface TrafficParameters {
  readonly targets: readonly TrafficTarget[];
  readonly rounds: number;
  /** How long each measure lasts, in ms. */
  readonly lengthMs: number;
}

/** Where a server answers over UDP. */
export interface TrafficServerParameters {
  readonly addresses: readonly string[];
}

/** One measure. */
export interface TrafficSample {
  /** Connections, answers or bytes. */
  readonly perSecond: number;
  /** CPU time of the client for each of them, in µs; what the kernel does for it on the way is mostly in, and what else the machine does is not. */
  readonly cpuUs: number;
}

/** What came of it, a sample for each round: by target, by measure. */
export type TrafficSamples = Readonly<Record<string, Readonly<Record<string, readonly TrafficSample[]>>>>;

const CONNECTS_AT_ONCE = 8;
const BULK = Buffer.alloc(64 * 1024);
/** A datagram that is not answered: so long it is waited for, and the run is worth nothing. */
const SILENCE_MS = 2_000;

/** Answer at these addresses until the harness goes away: over TCP with what came, but for bulk; over UDP with the datagram. Phase: `listening`, which nobody has to answer. */
export async function trafficServer({ addresses }: TrafficServerParameters, harness: Harness): Promise<void> {
  const server = createServer({ noDelay: true }, (socket) => {
    // Clients reset what they opened: that is no error here.
    socket.on("error", () => undefined);
    socket.on("data", (data) => data.length < BULK.length / 16 && socket.write(data));
  });
  await new Promise<void>((resolve) => server.listen(TARGET_PORT, "0.0.0.0", 4096, resolve));
  for (const address of addresses) {
    // Bound to the one address: an answer comes from where the question went.
    const datagrams = createSocket("udp4");
    datagrams.on("message", (message, from) => datagrams.send(message, from.port, from.address));
    await new Promise<void>((resolve) => datagrams.bind(TARGET_PORT, address, resolve));
  }
  await harness.reached("listening");
}

/** Measure as a Node program sees it. Targets take turns, so that what else the machine does favours none. */
export async function trafficClient({ targets, rounds, lengthMs }: TrafficParameters): Promise<TrafficSamples> {
  const samples: Record<string, Record<string, TrafficSample[]>> = Object.fromEntries(targets.map(({ name }) => [name, {}]));
  for (let round = 0; round <= rounds; round++) {
    for (const target of targets) {
      for (const [name, measure] of Object.entries(MEASURES[target.protocol])) {
        const sample = await measure(target, lengthMs);
        // The first round warms up.
        if (round > 0) ((samples[target.name] ??= {})[name] ??= []).push(sample);
      }
    }
  }
  return samples;
}

type Measure = (target: TrafficTarget, lengthMs: number) => Promise<TrafficSample>;

const MEASURES: Readonly<Record<TrafficTarget["protocol"], Readonly<Record<string, Measure>>>> = {
  TCP: { connects: connectsPerSecond, requests: requestsPerSecond, bulk: bytesPerSecond },
  UDP: {
    connected: (target, lengthMs) => datagramsPerSecond(target, lengthMs, true),
    unconnected: (target, lengthMs) => datagramsPerSecond(target, lengthMs, false),
  },
};

/** New connections, several at once. */
async function connectsPerSecond(target: TrafficTarget, lengthMs: number): Promise<TrafficSample> {
  return await perSecond(lengthMs, (isOver) =>
    Promise.all(
      Array.from({ length: CONNECTS_AT_ONCE }, async () => {
        let count = 0;
        for (; !isOver(); count++) await connectOnce(target);
        return count;
      }),
    ).then((counts) => counts.reduce((sum, count) => sum + count, 0)),
  );
}

/** Questions and answers of a byte over one connection that is kept. */
async function requestsPerSecond(target: TrafficTarget, lengthMs: number): Promise<TrafficSample> {
  const socket = await opened(target);
  try {
    return await perSecond(lengthMs, async (isOver) => {
      let count = 0;
      for (; !isOver(); count++) {
        const answered = once(socket, "data");
        socket.write("p");
        await answered;
      }
      return count;
    });
  } finally {
    socket.resetAndDestroy();
  }
}

/** As much as goes, one way. */
async function bytesPerSecond(target: TrafficTarget, lengthMs: number): Promise<TrafficSample> {
  const socket = await opened(target);
  try {
    return await perSecond(lengthMs, async (isOver) => {
      while (!isOver()) if (!socket.write(BULK)) await once(socket, "drain");
      return socket.bytesWritten - socket.writableLength;
    });
  } finally {
    socket.resetAndDestroy();
  }
}

/** Datagrams and their answers, one after another; each is sent to the service anew unless the socket is connected. */
async function datagramsPerSecond({ address, port }: TrafficTarget, lengthMs: number, isConnected: boolean): Promise<TrafficSample> {
  const socket: DatagramSocket = createSocket("udp4");
  try {
    if (isConnected) await new Promise<void>((resolve) => socket.connect(port, address, resolve));
    return await perSecond(lengthMs, async (isOver) => {
      let count = 0;
      for (; !isOver(); count++) {
        const answered = once(socket, "message", { signal: AbortSignal.timeout(SILENCE_MS) });
        if (isConnected) socket.send("p");
        else socket.send("p", port, address);
        await answered;
      }
      return count;
    });
  } finally {
    socket.close();
  }
}

async function perSecond(lengthMs: number, work: (isOver: () => boolean) => Promise<number>): Promise<TrafficSample> {
  const startMs = performance.now();
  const startCpu = process.cpuUsage();
  const count = await work(() => performance.now() - startMs >= lengthMs);
  const { user, system } = process.cpuUsage(startCpu);
  return { perSecond: (count * 1000) / (performance.now() - startMs), cpuUs: (user + system) / count };
}

async function opened({ address, port }: TrafficTarget): Promise<Socket> {
  const socket = connect({ host: address, port, noDelay: true });
  await once(socket, "connect");
  return socket;
}
