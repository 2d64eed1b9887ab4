import type { NodePlace } from "@turnout/lab";
import type { ChangeFinding, FlowFinding, RestartFinding, RolloutFinding } from "./findings.ts";
import { addressOf, portOf, SHOP, type Replica } from "./shop.ts";
import { firstEndpoints, type ShopEndpoint, type Stage } from "./stage.ts";
import type { Traffic } from "./traffic.ts";
import { askUntil, REFUSAL_MS, timeChange } from "./waiting.ts";

const SWITCHES = 8;
/** Longer than the shortest interval between syncs, so that each change is one by itself. */
const QUIET_MS = 250;
/** What a pod waits between being marked as terminating and being gone (a preStop hook). */
const TERMINATING_MS = 400;
const DOWN_MS = 1_000;
const METRICS_PORT = 10_249;
const METRICS_WAIT_MS = 5_000;
const FLOW_PORT = 40_125;

/** Point a service at one pod, then at another, and so on, and time how soon packets follow. */
export async function switchBackAndForth(stage: Stage): Promise<readonly ChangeFinding[]> {
  const [blue, green] = SHOP.banner.replicas;
  const findings: ChangeFinding[] = [];
  for (let round = 0; round < SWITCHES; round += 1) {
    const to = (round % 2 === 0 ? green : blue) as Replica;
    findings.push(...(await switchTo(stage, to)));
    await stage.pause(QUIET_MS);
  }
  return findings;
}

function switchTo(stage: Stage, to: Replica): Promise<readonly ChangeFinding[]> {
  return timeChange(stage, {
    service: SHOP.banner,
    change: () => stage.setEndpoints(SHOP.banner, [{ replica: to }]),
    isWanted: ({ server }) => server === to.name,
  });
}

/** Take away a service's last pod and give it back. */
export async function scaleToZeroAndBack(
  stage: Stage,
): Promise<{ readonly toZero: readonly ChangeFinding[]; readonly fromZero: readonly ChangeFinding[] }> {
  const toZero = await timeChange(stage, {
    service: SHOP.banner,
    change: () => stage.setEndpoints(SHOP.banner, []),
    isWanted: ({ outcome }) => outcome === "refused",
    timeoutMs: REFUSAL_MS,
  });
  await stage.pause(QUIET_MS);
  const fromZero = await timeChange(stage, {
    service: SHOP.banner,
    change: () => stage.setEndpoints(SHOP.banner, firstEndpoints(SHOP.banner)),
    isWanted: ({ outcome }) => outcome === "ok",
  });
  return { toZero, fromZero };
}

/** Replace the frontend's pods one by one as a Deployment does: the new one ready, the old one terminating, then gone. */
export async function rollOut(stage: Stage): Promise<RolloutFinding> {
  const { frontend } = SHOP;
  const startMs = stage.nowMs();
  const old = frontend.replicas.slice(0, frontend.startWith);
  const fresh = frontend.replicas.slice(frontend.startWith);
  let serving: readonly ShopEndpoint[] = old.map((replica) => ({ replica }));
  for (const [index, leaving] of old.entries()) {
    const coming = fresh[index];
    const others = serving.filter(({ replica }) => replica !== leaving);
    serving = coming === undefined ? others : [...others, { replica: coming }];
    await stage.setEndpoints(frontend, [...serving, { replica: leaving, ready: false, serving: true, terminating: true }]);
    await stage.pause(TERMINATING_MS);
    await stage.setEndpoints(frontend, serving);
    await stage.cluster.place(leaving.pod).agent().stop({ transport: "TCP", port: frontend.serverPort, how: "drain" });
  }
  await stage.pause(QUIET_MS);
  const family = stage.families[0] ?? "IPv4";
  const request = { address: addressOf(frontend, "loadBalancerIP", family), port: portOf(frontend) };
  const { servers } = await stage.cluster
    .place("client1")
    .agent()
    .burst({ ...request, count: 100 });
  return {
    service: frontend.manifest.name,
    replaced: old.length,
    durationMs: stage.nowMs() - startMs,
    expected: fresh.map(({ name }) => name).toSorted(),
    answering: Object.keys(servers).toSorted(),
  };
}

/** Let UDP clients that never change their port lose their server, and see whether they get to the other one. */
export async function followFlows(stage: Stage): Promise<readonly FlowFinding[]> {
  const { metrics } = SHOP;
  const agent = stage.cluster.place("pod-2-4").agent();
  const requests = stage.families.map((family) => ({
    family,
    request: {
      address: addressOf(metrics, "clusterIP", family),
      port: portOf(metrics),
      transport: "UDP",
      fromPort: FLOW_PORT,
    } as const,
  }));
  const findings: FlowFinding[] = [];
  for (const { family, request } of requests) {
    await stage.setEndpoints(metrics, firstEndpoints(metrics));
    await stage.pause(QUIET_MS);
    const before = new Set<string>();
    for (let count = 0; count < 5; count += 1) before.add((await agent.attempt({ ...request, timeoutMs: REFUSAL_MS })).server ?? "nobody");
    const gone = metrics.replicas.filter(({ name }) => before.has(name));
    const left = metrics.replicas.filter((replica) => !gone.includes(replica));
    const sinceMs = stage.nowMs();
    await stage.setEndpoints(
      metrics,
      left.map((replica) => ({ replica })),
    );
    let after: string | undefined;
    const tookMs = await askUntil(
      stage,
      agent,
      request,
      ({ server }) => {
        after = left.find(({ name }) => name === server)?.name;
        return after !== undefined;
      },
      sinceMs,
    );
    findings.push({ family, port: FLOW_PORT, before: [...before], after, tookMs: tookMs ?? stage.nowMs() - sinceMs });
  }
  return findings;
}

/** Kill the first node's proxy the hard way, change something meanwhile, and start it again. */
export async function killAndRestart(stage: Stage, traffic: Traffic): Promise<RestartFinding> {
  const proxy = stage.proxies[0];
  if (proxy === undefined) throw new Error("the proxies are not started");
  const [blue, green] = SHOP.banner.replicas as readonly [Replica, Replica];
  await switchTo(stage, blue);
  await stage.pause(QUIET_MS);
  const answeredBefore = await traffic.answered();
  const downAtMs = stage.nowMs();
  await proxy.end("SIGKILL");
  await stage.setEndpoints(SHOP.banner, [{ replica: green }]);
  await stage.pause(DOWN_MS);
  const answeredMeanwhile = (await traffic.answered()) - answeredBefore;
  const downMs = stage.nowMs() - downAtMs;
  const caughtUp = await timeChange(stage, {
    service: SHOP.banner,
    change: () => Promise.resolve(proxy.again()),
    isWanted: ({ server }) => server === green.name,
    nodes: [proxy.node],
  });
  const times = caughtUp.map(({ tookMs }) => tookMs);
  const caughtUpMs = times.includes(undefined) ? undefined : Math.max(...times.map((ms) => ms ?? 0));
  const page = await metricsOf(stage, proxy.node);
  return {
    node: proxy.node.name,
    downMs,
    answeredMeanwhile,
    caughtUpMs,
    objects: sumOfMetric(page, "turnout_objects"),
    written: sumOfMetric(page, "turnout_objects_put_total"),
  };
}

/** A proxy's metrics, once each family's first sync is in them: packets may follow a moment before that. */
async function metricsOf(stage: Stage, node: NodePlace): Promise<string> {
  const untilMs = stage.nowMs() + METRICS_WAIT_MS;
  for (;;) {
    const { body } = await node.agent().get({ address: "127.0.0.1", port: METRICS_PORT, path: "/metrics" });
    const isComplete = stage.families.every((family) => body.includes(`turnout_objects{ip_family="${family}"}`));
    if (isComplete || stage.nowMs() > untilMs) return body;
    await stage.pause(20);
  }
}

/** Add up a metric over its labels on a Prometheus text page; 0 when it isn't there. Pure. */
export function sumOfMetric(page: string, name: string): number {
  const lines = page.split("\n").filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
