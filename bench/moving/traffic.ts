import { setTimeout as sleep } from "node:timers/promises";
import type { Agent, Cluster, HoldStatus, Tally } from "@turnout/lab";
import { MAIN_PORT, SOURCES } from "./stage.ts";
import type { Source } from "./stage.ts";
import { watchStalls } from "./stalls.ts";

/** UDP flows of each source and family. */
const UDP_FLOWS = 5;
/** Of a connection that is kept, ms. */
const EVERY_MS = 500;
/** For an answer to a question, at the end: longer than TCP's third try. */
const PATIENCE_MS = 90_000;

/** What a move did to traffic. */
export interface TrafficReport {
  readonly connections: number;
  /** Those that are reset, closed, or silent at the end. */
  readonly connectionsLost: number;
  /** Which flows lost something and what, and which endpoints stalled by themselves: a line for each. */
  readonly losses: readonly string[];
  readonly attempts: number;
  /** New connections and new UDP flows that got no answer, by what became of them. */
  readonly failed: Readonly<Record<string, number>>;
  readonly udpFlows: number;
  readonly datagrams: number;
  /** Questions over kept UDP flows that were never answered. */
  readonly datagramsLost: number;
}

interface Flow {
  readonly agent: Agent;
  readonly source: Source;
  readonly address: string;
}

interface Held extends Flow {
  readonly handle: number;
}

/** What became of a connection that was asked at the end. */
type Fate = "alive" | "silent" | Exclude<HoldStatus["state"], "open">;

/** Traffic of all kinds of clients, which goes on. */
export interface Traffic {
  /** Wait until each source has made some more attempts. */
  more(attempts: number): Promise<void>;
  stop(): Promise<TrafficReport>;
}

/** How much of it. */
export interface TrafficOptions {
  /** TCP connections that are kept. */
  readonly connections: number;
  /** Between two new ones of a worker. */
  readonly pauseMs: number;
}

/** Open `connections` TCP connections and some UDP flows, all kept, and make new ones over and over. */
export async function startTraffic(cluster: Cluster, { connections, pauseMs }: TrafficOptions): Promise<Traffic> {
  const flows = SOURCES.flatMap((source) =>
    source.addresses.map((address) => ({ source, address, agent: cluster.place(source.from).agent() })),
  );
  const ofTcp = flows.filter(({ source }) => source.transport === "TCP");
  const held: Held[] = [];
  const hold = async (flow: Flow, count: number): Promise<void> => {
    const { source, address, agent } = flow;
    const { port, transport } = source;
    for (let index = 0; index < count; index += 1)
      held.push({ ...flow, handle: await agent.hold({ address, port, transport, everyMs: EVERY_MS, timeoutMs: PATIENCE_MS }) });
  };
  const share = (index: number): number =>
    Math.floor((connections * (index + 1)) / ofTcp.length) - Math.floor((connections * index) / ofTcp.length);
  await Promise.all(flows.map((flow) => hold(flow, flow.source.transport === "UDP" ? UDP_FLOWS : share(ofTcp.indexOf(flow)))));
  const loads = await Promise.all(
    flows.map(async ({ source, source: { port, transport }, address, agent }) => ({
      agent,
      source,
      address,
      handle: await agent.startLoad({ address, port, transport, concurrency: 2, pauseMs, timeoutMs: 5_000 }),
    })),
  );
  const stalls = watchStalls(cluster, MAIN_PORT);
  const attempts = (): Promise<number[]> => Promise.all(loads.map(async ({ agent, handle }) => (await agent.peekLoad(handle)).attempts));
  return {
    more: async (count) => {
      const wanted = (await attempts()).map((now) => now + count);
      while ((await attempts()).some((now, index) => now < (wanted[index] ?? 0))) await sleep(50);
    },
    stop: async () => {
      const stalled = await stalls.stop();
      const tallies = await Promise.all(loads.map(({ agent, handle }) => agent.stopLoad(handle)));
      const kept = held.filter(({ source }) => source.transport === "TCP");
      const udp = await lowestSilence(held.filter(({ source }) => source.transport === "UDP"));
      const fates = await Promise.all(kept.map(fateOf));
      await Promise.all(held.map(({ agent, handle }) => agent.release(handle)));
      return {
        connections: kept.length,
        connectionsLost: fates.filter((fate) => fate !== "alive").length,
        losses: [
          ...kept.flatMap((one, index) => (fates[index] === "alive" ? [] : [`${nameOf(one)}: a kept connection is ${fates[index] ?? ""}`])),
          ...loads.flatMap((one, index) => failuresOf(tallies[index]).map((what) => `${nameOf(one)}: ${what} of new ones`)),
          ...stalled,
        ],
        attempts: tallies.reduce((sum, { attempts: made }) => sum + made, 0),
        failed: failures(tallies),
        ...udp,
      };
    },
  };
}

function failures(tallies: readonly Tally[]): Readonly<Record<string, number>> {
  const sum: Record<string, number> = {};
  for (const { failed } of tallies) for (const [what, count] of Object.entries(failed)) sum[what] = (sum[what] ?? 0) + count;
  return sum;
}

const nameOf = ({ source: { from, port, transport }, address }: Flow): string => `${from} → ${address} ${String(port)} ${transport}`;

const failuresOf = (tally: Tally | undefined): readonly string[] =>
  Object.entries(tally?.failed ?? {}).map(([what, count]) => `${String(count)} ${what}`);

/** Whether a connection answers what it is asked from now on. */
async function fateOf({ agent, handle }: Held): Promise<Fate> {
  const { answers } = await agent.holdStatus(handle);
  const untilMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const now = await agent.holdStatus(handle);
    if (now.state !== "open") return now.state;
    if (now.answers > answers) return "alive";
    if (performance.now() > untilMs) return "silent";
    await sleep(100);
  }
}

/** Questions under way are answered a moment later: those that never are count, the least that is seen unanswered over some time. */
async function lowestSilence(flows: readonly Held[]): Promise<Pick<TrafficReport, "udpFlows" | "datagrams" | "datagramsLost">> {
  const silent = flows.map(() => Infinity);
  let last: readonly HoldStatus[] = [];
  for (let look = 0; look < 20; look += 1) {
    last = await Promise.all(flows.map(({ agent, handle }) => agent.holdStatus(handle)));
    for (const [index, { asks, answers }] of last.entries()) silent[index] = Math.min(silent[index] ?? Infinity, asks - answers);
    await sleep(EVERY_MS / 7);
  }
  return {
    udpFlows: flows.length,
    datagrams: last.reduce((sum, { asks }) => sum + asks, 0),
    datagramsLost: silent.reduce((sum, count) => sum + count, 0),
  };
}
