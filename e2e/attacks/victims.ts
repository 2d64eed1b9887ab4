import { setTimeout as sleep } from "node:timers/promises";
import { serviceManifest, sliceManifests } from "@turnout/lab";
import type { Agent, ServiceManifest, Tally } from "@turnout/lab";
import type { Site } from "../site.ts";
import { SERVER_PORT, SERVICE_PORT } from "../services.ts";

/** The only endpoint of the Service that is asked all the time. */
export const VICTIM = "pod-1-2";
const OTHER = "pod-1-3";
const COMMON = { namespace: "shop", ports: [{ port: SERVICE_PORT, targetPort: SERVER_PORT }] } as const;
/** Whose endpoint changes. */
const MOVING: ServiceManifest = { ...COMMON, name: "moving", clusterIPs: ["10.96.0.99"] };
/** Whose clients stay with their endpoint. */
const STICKY: ServiceManifest = { ...COMMON, name: "sticky", clusterIPs: ["10.96.0.98"], affinitySeconds: 10_800 };
/** Between two attempts to see a change. */
const POLL_MS = 20;
/** A change that isn't in force after so long counts as lost. */
const CHANGE_MAX_MS = 60_000;
/** Between two questions about health, and how long an answer may take. */
const HEALTH_EVERY_MS = 200;
const HEALTH_MAX_MS = 10_000;
const HEALTH = { address: "127.0.0.1", port: 10256, timeoutMs: HEALTH_MAX_MS } as const;

/** What the victims noticed in some time. */
export interface Noticed {
  /** Requests with new connections, to a Service that has {@link VICTIM} alone: from a pod to the cluster IP, and from outside to the node port. */
  readonly requests: readonly Tally[];
  /** Requests of a client that is to stay with its endpoint. */
  readonly sticky: Tally;
  /** How long each change of another Service took until packets went there, in ms. */
  readonly changesMs: readonly number[];
  /** The longest that /healthz and /readyz took, in ms. */
  readonly healthMs: number;
  /** What they answered besides 200; 0: nothing. */
  readonly badHealth: readonly number[];
}

/** Tenants who do nothing but use their Services. */
export interface Victims {
  /** Use them for so long. */
  watch(forMs: number): Promise<Noticed>;
}

/** Write the victims' Services; in force when it resolves. */
export async function createVictims(site: Site): Promise<Victims> {
  const [node, client, pod] = ["node1", "client1", "pod-1-1"].map((name) => site.place(name).agent()) as [Agent, Agent, Agent];
  const write = async (service: ServiceManifest, ...at: readonly string[]): Promise<void> => {
    const endpoints = at.map((name) => ({ place: site.place(name) }));
    await site.api.apply([serviceManifest(service), ...sliceManifests(service, endpoints, ["IPv4"])]);
  };
  await write(MOVING, VICTIM);
  await write(STICKY, VICTIM, OTHER);
  const asked = await site.services.create({ endpoints: [VICTIM], protocols: ["TCP"], ways: ["nodePort"], fields: { namespace: "shop" } });
  const sources = [
    { agent: pod, target: asked.target("clusterIP", "IPv4"), pauseMs: 20 },
    { agent: client, target: asked.target("nodePort@node1", "IPv4"), pauseMs: 20 },
    // Seldom: who is forgotten is who wasn't seen for long.
    { agent: pod, target: { address: STICKY.clusterIPs[0] ?? "", port: SERVICE_PORT }, pauseMs: 3_000 },
  ];
  let at = VICTIM;
  const change = async (): Promise<number> => {
    at = at === VICTIM ? OTHER : VICTIM;
    const startMs = performance.now();
    await write(MOVING, at);
    for (;;) {
      const { server } = await pod.attempt({ address: MOVING.clusterIPs[0] ?? "", port: SERVICE_PORT, timeoutMs: 500 });
      const tookMs = performance.now() - startMs;
      if (server === at || tookMs > CHANGE_MAX_MS) return tookMs;
      await sleep(POLL_MS);
    }
  };
  return {
    watch: async (forMs) => {
      const untilMs = performance.now() + forMs;
      const load = { concurrency: 1, timeoutMs: 1_000 };
      const loads = await Promise.all(sources.map(({ agent, target, pauseMs }) => agent.startLoad({ ...target, ...load, pauseMs })));
      const [changesMs, health] = await Promise.all([until(untilMs, change), askHealth(node, untilMs)]);
      const [ofPod, ofClient, sticky] = (await Promise.all(sources.map(({ agent }, index) => agent.stopLoad(loads[index] ?? 0)))) as [
        Tally,
        Tally,
        Tally,
      ];
      return { requests: [ofPod, ofClient], sticky, changesMs, ...health };
    },
  };
}

async function until(untilMs: number, measure: () => Promise<number>): Promise<readonly number[]> {
  const measured: number[] = [];
  while (performance.now() < untilMs) measured.push(await measure());
  return measured;
}

async function askHealth(node: Agent, untilMs: number): Promise<Pick<Noticed, "healthMs" | "badHealth">> {
  const badHealth: number[] = [];
  const tookMs = await until(untilMs, async () => {
    await sleep(HEALTH_EVERY_MS);
    const startMs = performance.now();
    const answers = await Promise.all(["/healthz", "/readyz"].map((path) => node.get({ ...HEALTH, path })));
    badHealth.push(...answers.map(({ status }) => status).filter((status) => status !== 200));
    return performance.now() - startMs;
  });
  return { healthMs: Math.max(0, ...tookMs), badHealth };
}
