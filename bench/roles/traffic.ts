import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { softirqThreads, threadsTimeUs } from "../cpu-time.ts";
import type { Harness } from "../line-channel.ts";
import { ANSWERED_BYTES, connectTo, CONVERSATIONS, inTurn, loadUdpSockets } from "@turnout/lab";
import type { Conversation, Talk, TrafficMeasureName, TrafficPlace } from "@turnout/lab";
import { TARGET_PORTS } from "../traffic-workload.ts";

/** What is asked for. */
export interface TrafficTarget {
  readonly name: string;
  /** All of one family; they are asked in turn. */
  readonly places: readonly TrafficPlace[];
  /** What is measured here, of what the client measures; `connect`: single connects are timed. */
  readonly measures: readonly (TrafficMeasureName | "connect")[];
}

/** What a client does to each target in turn, round after round. */
export interface TrafficParameters {
  readonly targets: readonly TrafficTarget[];
  /** In this order. */
  readonly measures: readonly TrafficMeasureName[];
  readonly rounds: number;
  /** How long each measure of a target lasts, in ms. */
  readonly lengthMs: number;
  /** Connects that are timed in each round, one at a time. */
  readonly connects: number;
  /** Whose CPU time counts beside the client's. */
  readonly serverPid: number;
}

/** One measure. */
export interface TrafficSample {
  /** Connections, answers, packets or bytes. */
  readonly perSecond: number;
  /** CPU time for each of them, in µs: of client, server and ksoftirqd, so what the kernel does on the way is in. */
  readonly cpuUs: number;
}

/** What came of it. */
export interface TrafficSamples {
  /** A sample for each round: by target, by measure. */
  readonly rates: Readonly<Record<string, Readonly<Partial<Record<TrafficMeasureName, readonly TrafficSample[]>>>>>;
  /** What single connects took, of all rounds: by target. */
  readonly connectMs: Readonly<Record<string, readonly number[]>>;
}

/** How long a target has its turn. */
const SLICE_MS = 20;
/** Connects that are timed in a turn, of each target. */
const CONNECTS_A_TURN = 20;
/** Slices of each measure in the first round, which warms up. */
const WARM_UP_SLICES = 2;
/** For the server, and the network before it, to be done with what was sent, before that is counted and CPU time is read. */
const SETTLE_MS = 4;

/** Answer over TCP with what came, but for bulk, until the harness goes away, and take UDP, which nobody reads. Phase: `listening`, which nobody has to answer. */
export async function trafficServer(_parameters: unknown, harness: Harness): Promise<void> {
  const server = createServer({ noDelay: true }, (socket) => {
    // Clients reset what they opened: that is no error here.
    socket.on("error", () => undefined);
    socket.on("data", (data) => data.length < ANSWERED_BYTES && socket.write(data));
  });
  await new Promise<void>((resolve) => server.listen(TARGET_PORTS.tcp, "::", 4096, resolve));
  const sockets = await loadUdpSockets();
  sockets.open("IPv6", sockets.addressOf("::", TARGET_PORTS.udp));
  await harness.reached("listening");
}

/**
 * Measure as a Node program sees it. Targets take turns, so that what else the machine does favours none.
 * Phase: `turn`, before each slice of all targets and every few single connects, so that clients can take turns, too.
 */
export async function trafficClient(parameters: TrafficParameters, harness: Harness): Promise<TrafficSamples> {
  const { targets, measures, rounds, lengthMs, connects, serverPid } = parameters;
  const rates: Record<string, Partial<Record<TrafficMeasureName, TrafficSample[]>>> = Object.fromEntries(
    targets.map(({ name }) => [name, {}]),
  );
  const connectMs: Record<string, number[]> = {};
  const turn = (): Promise<void> => harness.reached("turn");
  const spentUs = cpuClock(measures.length === 0 ? [] : [serverPid, ...softirqThreads()]);
  for (let round = 0; round <= rounds; round++) {
    const isKept = round > 0;
    for (const [name, times] of await timeConnects(targets, connects, turn)) if (isKept) (connectMs[name] ??= []).push(...times);
    const slices = isKept ? Math.max(1, Math.round(lengthMs / SLICE_MS)) : WARM_UP_SLICES;
    for (const measure of measures) {
      const asked = targets.filter((target) => target.measures.includes(measure));
      const sampled = await measureInSlices(measure, asked, { serverPid, slices, spentUs, turn });
      for (const [name, sample] of sampled) if (isKept) ((rates[name] ??= {})[measure] ??= []).push(sample);
    }
  }
  return { rates, connectMs };
}

/** CPU time so far of this process and others, µs. */
function cpuClock(others: readonly number[]): () => number {
  return () => {
    const { user, system } = process.cpuUsage();
    return others.reduce((sum, pid) => sum + threadsTimeUs(pid), user + system);
  };
}

interface Slicing extends Pick<Talk, "serverPid"> {
  readonly slices: number;
  readonly spentUs: () => number;
  readonly turn: () => Promise<void>;
}

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
  measure: TrafficMeasureName,
  targets: readonly TrafficTarget[],
  { serverPid, slices, spentUs, turn }: Slicing,
): Promise<ReadonlyMap<string, TrafficSample>> {
  const all: Slices[] = [];
  try {
    for (const { name, places } of targets)
      all.push({ name, conversation: await CONVERSATIONS[measure]({ places, serverPid }), count: 0, tookMs: 0, cpuUs: 0 });
    for (let slice = 0; slice < slices; slice++) {
      await turn();
      for (const one of slice % 2 === 0 ? all : all.toReversed()) await addSlice(one, spentUs);
    }
  } finally {
    for (const { conversation } of all) conversation.end();
  }
  const [idle] = all.filter(({ count }) => count === 0);
  if (idle !== undefined) throw new Error(`${measure} to ${idle.name}: nothing arrived`);
  return new Map(all.map(({ name, count, tookMs, cpuUs }) => [name, { perSecond: (count * 1000) / tookMs, cpuUs: cpuUs / count }]));
}

async function addSlice(slices: Slices, spentUs: () => number): Promise<void> {
  const startUs = spentUs();
  const startMs = performance.now();
  const { conversation } = slices;
  const before = conversation.count();
  await conversation.work(() => performance.now() - startMs >= SLICE_MS);
  slices.tookMs += performance.now() - startMs;
  await sleep(SETTLE_MS);
  slices.count += conversation.count() - before;
  slices.cpuUs += spentUs() - startUs;
}

/** Time connects, one at a time; targets take turns at each. */
async function timeConnects(
  targets: readonly TrafficTarget[],
  count: number,
  turn: () => Promise<void>,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const timed = targets
    .filter(({ measures }) => measures.includes("connect"))
    .map(({ name, places }) => ({ name, next: inTurn(places), times: [] as number[] }));
  for (let k = 0; k < count; k++) {
    if (k % CONNECTS_A_TURN === 0) await turn();
    for (const { next, times } of timed) times.push(await connectTo(next()));
  }
  return new Map(timed.map(({ name, times }) => [name, times]));
}
