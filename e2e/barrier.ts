import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@turnout/core";
import { serviceManifest, sliceManifests } from "@turnout/lab";
import type { Agent, Cluster, ClusterApi } from "@turnout/lab";
import type { Proxy } from "./proxy.ts";

const ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "10.96.255.254", IPv6: "fd00:96::fffe" };
const PORT = 7;
/** Between two questions; longer where one costs much, so that the asking doesn't keep the proxies from what is waited for. */
const PAUSE_MS = { least: 10, most: 100 } as const;
const LATENCIES_IN_A_PAUSE = 5;
/** After the proxy's last word. Far above the pauses that follow what a scenario does to the API server (8 s), below the limit of a test, so that the log is shown. */
const GIVE_UP_MS = 60_000;

/**
 * Make a function that waits until every proxy has in force what the API server was told before.
 *
 * It gives a Service of its own a port nobody has used, with an endpoint, and waits until the port answers from every node in every
 * family: watches deliver in order, so whatever was applied before has come by then. Namespaces are served in turn (ADR 0088), so it also waits until
 * the proxy says that no row waits. Node objects have a watch of their own and are not covered.
 */
export function createBarrier(cluster: Cluster, api: ClusterApi, proxies: readonly Proxy[]): () => Promise<void> {
  const server = cluster.nodes[0]?.pods[0];
  if (server === undefined) throw new Error("the barrier needs a pod on the first node");
  let serving: Promise<void> | undefined;
  let round = 0;
  let last: Promise<unknown> = Promise.resolve();
  const pass = async (): Promise<void> => {
    serving ??= server.agent().serve({ name: "barrier", transport: "TCP", port: PORT });
    await serving;
    round += 1;
    const port = 10_000 + round;
    const service = {
      namespace: "e2e",
      name: "barrier",
      clusterIPs: cluster.families.map((family) => ADDRESS[family]),
      ports: [{ name: `round-${round}`, port, targetPort: PORT }],
    };
    await api.apply([serviceManifest(service), ...sliceManifests(service, [{ place: server }], cluster.families)]);
    const following = proxies.filter((proxy) => proxy.isFollowing);
    await Promise.all(following.flatMap((proxy) => cluster.families.map((family) => passes(proxy, proxy.node.agent(), family, port))));
  };
  // One round at a time: the next one takes the last one's port away.
  return () => {
    const mine = last.then(pass);
    last = Promise.allSettled([mine]);
    return mine;
  };
}

async function passes(proxy: Proxy, agent: Agent, family: IPFamily, port: number): Promise<void> {
  let untilMs = performance.now() + GIVE_UP_MS;
  let log = proxy.log();
  for (;;) {
    const { outcome, latencyMs } = await agent.attempt({ address: ADDRESS[family], port, timeoutMs: 100 });
    if (outcome === "ok" && !(await hasWaitingRows(agent, family))) return;
    if (!proxy.isFollowing) throw new Error(`turnout on ${proxy.node.name} ended:\n${proxy.log()}`);
    if (proxy.log() !== log) {
      // It is still on its way: a start takes long in a guest on a busy machine.
      untilMs = performance.now() + GIVE_UP_MS;
      log = proxy.log();
    }
    if (performance.now() > untilMs)
      throw new Error(`turnout on ${proxy.node.name} does not follow (${family} port ${port}: ${outcome}):\n${proxy.log()}`);
    await sleep(Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, latencyMs * LATENCIES_IN_A_PAUSE)));
  }
}

/** Whether rows wait for their turn, as the proxy's status says; a proxy that does not answer has none. */
async function hasWaitingRows(node: Agent, family: IPFamily): Promise<boolean> {
  const { status, body } = await node.get({ address: "127.0.0.1", port: 10249, path: "/turnout/status" });
  if (status !== 200) return false;
  const { families } = JSON.parse(body) as {
    readonly families: readonly { readonly family: IPFamily; readonly waiting?: { readonly rows: { readonly count: number } } }[];
  };
  return families.some((one) => one.family === family && (one.waiting?.rows.count ?? 0) > 0);
}
