import { createSocket } from "node:dgram";
import type { Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { softirqThreads, threadsTimeUs } from "../cpu-time.ts";
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
  /** Connects that are timed in each round, one at a time. */
  readonly connects: number;
  /** Whose CPU time counts beside the client's. */
  readonly serverPid: number;
}

/** Where a server answers over UDP. */
export interface TrafficServerParameters {
  readonly addresses: readonly string[];
}

/** One measure. */
export interface TrafficSample {
  /** Connections, answers or bytes. */
  readonly perSecond: number;
  /** CPU time for each of them, in µs: of client, server and ksoftirqd, so what the kernel does on the way is in. */
  readonly cpuUs: number;
}

/** What came of it. */
export interface TrafficSamples {
  /** A sample for each round: by target, by measure. */
  readonly rates: Readonly<Record<string, Readonly<Record<string, readonly TrafficSample[]>>>>;
  /** What single connects took, of all rounds: by target. */
  readonly connectMs: Readonly<Record<string, readonly number[]>>;
}

const CONNECTS_AT_ONCE = 8;
const BULK = Buffer.alloc(64 * 1024);
/** A datagram that is not answered: so long it is waited for, and the run is worth nothing. */
const SILENCE_MS = 2_000;
/** How long a target has its turn. */
const SLICE_MS = 20;
/** For the server to be done with what was sent to it, before its CPU time is read. */
const SETTLE_MS = 4;

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

/**
 * Measure as a Node program sees it. Targets take turns, so that what else the machine does favours none.
 * Phase: `turn`, before each measure, so that clients can take turns, too.
 */
export async function trafficClient(parameters: TrafficParameters, harness: Harness): Promise<TrafficSamples> {
  const { targets, rounds, lengthMs, connects, serverPid } = parameters;
  const rates: Record<string, Record<string, TrafficSample[]>> = Object.fromEntries(targets.map(({ name }) => [name, {}]));
  const connectMs: Record<string, number[]> = {};
  const others = [serverPid, ...softirqThreads()];
  for (let round = 0; round <= rounds; round++) {
    // The first round warms up.
    const isKept = round > 0;
    await harness.reached("turn");
    for (const [name, times] of await timeConnects(targets, connects)) if (isKept) (connectMs[name] ??= []).push(...times);
    for (const measure of MEASURES) {
      await harness.reached("turn");
      for (const [name, sample] of await measureInSlices(measure, targets, { lengthMs, others }))
        if (isKept) ((rates[name] ??= {})[measure.name] ??= []).push(sample);
    }
  }
  return { rates, connectMs };
}

interface Limits {
  readonly lengthMs: number;
  /** Processes whose CPU time counts beside this one's. */
  readonly others: readonly number[];
}

/** Traffic to one target that goes on whenever it is its turn. */
interface Conversation {
  /** Resolves to how much there was: connections, answers or bytes. */
  work(isOver: () => boolean): Promise<number>;
  end(): void;
}

interface Measure {
  readonly name: string;
  readonly protocol: TrafficTarget["protocol"];
  readonly begin: (target: TrafficTarget) => Promise<Conversation>;
}

const MEASURES: readonly Measure[] = [
  { name: "connects", protocol: "TCP", begin: (target) => Promise.resolve(connecting(target)) },
  { name: "requests", protocol: "TCP", begin: asking },
  { name: "bulk", protocol: "TCP", begin: sending },
  { name: "connected", protocol: "UDP", begin: (target) => askingByDatagram(target, true) },
  { name: "unconnected", protocol: "UDP", begin: (target) => askingByDatagram(target, false) },
];

/** What a target got in all its slices. */
interface Slices {
  readonly name: string;
  readonly conversation: Conversation;
  count: number;
  tookMs: number;
  cpuUs: number;
}

/**
 * Measure targets in short slices that take turns, there and back: a machine that is somebody's guest is faster at one time than at another, by more
 * than a proxy costs, but not from one slice to the next.
 */
async function measureInSlices(
  measure: Measure,
  targets: readonly TrafficTarget[],
  limits: Limits,
): Promise<ReadonlyMap<string, TrafficSample>> {
  const all: Slices[] = [];
  try {
    for (const target of targets.filter(({ protocol }) => protocol === measure.protocol))
      all.push({ name: target.name, conversation: await measure.begin(target), count: 0, tookMs: 0, cpuUs: 0 });
    for (let slice = 0; slice < limits.lengthMs / SLICE_MS; slice++)
      for (const one of slice % 2 === 0 ? all : all.toReversed()) await addSlice(one, limits);
  } finally {
    for (const { conversation } of all) conversation.end();
  }
  return new Map(all.map(({ name, count, tookMs, cpuUs }) => [name, { perSecond: (count * 1000) / tookMs, cpuUs: cpuUs / count }]));
}

async function addSlice(slices: Slices, { others }: Limits): Promise<void> {
  const spentUs = (): number => {
    const { user, system } = process.cpuUsage();
    return others.reduce((sum, pid) => sum + threadsTimeUs(pid), user + system);
  };
  const startUs = spentUs();
  const startMs = performance.now();
  slices.count += await slices.conversation.work(() => performance.now() - startMs >= SLICE_MS);
  slices.tookMs += performance.now() - startMs;
  await sleep(SETTLE_MS);
  slices.cpuUs += spentUs() - startUs;
}

/** Time connects, one at a time; targets take turns at each. */
async function timeConnects(targets: readonly TrafficTarget[], count: number): Promise<ReadonlyMap<string, readonly number[]>> {
  const tcp = targets.filter(({ protocol }) => protocol === "TCP").map((target) => ({ target, times: [] as number[] }));
  for (let k = 0; k < count; k++) for (const { target, times } of tcp) times.push(await connectOnce(target));
  return new Map(tcp.map(({ target, times }) => [target.name, times]));
}

/** New connections, several at once. */
function connecting(target: TrafficTarget): Conversation {
  return {
    async work(isOver) {
      const counts = await Promise.all(
        Array.from({ length: CONNECTS_AT_ONCE }, async () => {
          let count = 0;
          for (; !isOver(); count++) await connectOnce(target);
          return count;
        }),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    },
    end: () => undefined,
  };
}

/** Questions and answers of a byte over one connection that is kept. */
async function asking(target: TrafficTarget): Promise<Conversation> {
  const socket = await opened(target);
  return {
    async work(isOver) {
      let count = 0;
      for (; !isOver(); count++) {
        const answered = once(socket, "data");
        socket.write("p");
        await answered;
      }
      return count;
    },
    end: () => void socket.resetAndDestroy(),
  };
}

/** As much as goes, one way. */
async function sending(target: TrafficTarget): Promise<Conversation> {
  const socket = await opened(target);
  const sent = (): number => socket.bytesWritten - socket.writableLength;
  return {
    async work(isOver) {
      const before = sent();
      while (!isOver()) if (!socket.write(BULK)) await once(socket, "drain");
      return sent() - before;
    },
    end: () => void socket.resetAndDestroy(),
  };
}

/** Datagrams and their answers, one after another; each is sent to the service anew unless the socket is connected. */
async function askingByDatagram({ address, port }: TrafficTarget, isConnected: boolean): Promise<Conversation> {
  const socket: DatagramSocket = createSocket("udp4");
  if (isConnected) await new Promise<void>((resolve) => socket.connect(port, address, resolve));
  return {
    async work(isOver) {
      let count = 0;
      for (; !isOver(); count++) {
        const answered = once(socket, "message", { signal: AbortSignal.timeout(SILENCE_MS) });
        if (isConnected) socket.send("p");
        else socket.send("p", port, address);
        await answered;
      }
      return count;
    },
    end: () => void socket.close(),
  };
}

async function opened({ address, port }: TrafficTarget): Promise<Socket> {
  const socket = connect({ host: address, port, noDelay: true });
  await once(socket, "connect");
  return socket;
}
