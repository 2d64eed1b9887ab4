import { isDeepStrictEqual } from "node:util";
import type { NodePlace, NodeProcess } from "@turnout/lab";
import type { ApiServerStage } from "./stage.ts";
import { until } from "./until.ts";

const WAIT_MS = 30_000;
const HEALTH_PORT = 32_100;
const HEALTHZ_PORT = 10_256;
const METRICS_PORT = 10_249;
/** Rights of `system:node-proxier` without those for events. */
const MUTE_USER = "turnout-mute";

interface StoredEvent {
  readonly type: string;
  readonly reason: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly regarding: { readonly kind: string; readonly name: string };
  readonly note?: string | undefined;
  readonly eventTime: string;
}

async function eventsOf(stage: ApiServerStage, reason: string, node: NodePlace): Promise<readonly StoredEvent[]> {
  const { items } = await stage.api.get<{ items: StoredEvent[] }>("/apis/events.k8s.io/v1/events");
  return items.filter(
    (event) => event.reason === reason && (event.regarding.name === node.name || event.note?.startsWith(`node ${node.name} `)),
  );
}

/** What two proxies on two nodes must have alike. */
function comparable({ metadata, eventTime, ...event }: StoredEvent, node: NodePlace): unknown {
  const text = JSON.stringify({
    ...event,
    namespace: metadata.namespace,
    name: metadata.name.replace(/\.[0-9a-f]{16}$/, ".NS"),
    eventTime: eventTime.replaceAll(/\d/g, "9"),
    series: undefined,
  });
  return JSON.parse([node.name, node.address("IPv4"), node.address("IPv6")].reduce((rest, own) => rest.replaceAll(own, "OWN"), text));
}

function same(ours: unknown, theirs: unknown): void {
  if (!isDeepStrictEqual(ours, theirs))
    throw new Error(`Turnout's event ${JSON.stringify(ours)} and kube-proxy's ${JSON.stringify(theirs)}`);
}

async function withEnd<T>(
  processes: readonly (NodeProcess | undefined)[],
  body: () => Promise<T>,
  last: () => Promise<unknown> = () => Promise.resolve(),
): Promise<T> {
  try {
    return await body();
  } finally {
    await last();
    for (const process of processes) if (process?.isRunning === true) await process.end("SIGKILL");
  }
}

/** Turnout's event of its start has the fields of kube-proxy's. */
export async function starting(stage: ApiServerStage): Promise<string> {
  const turnout = await stage.turnout();
  const other = stage.kubeProxy === undefined ? undefined : await stage.startKubeProxy();
  return await withEnd([turnout, other], async () => {
    const written = async (node: NodePlace): Promise<boolean> => (await eventsOf(stage, "Starting", node)).length > 0;
    await until("Turnout's is there", WAIT_MS, () => written(stage.turnoutNode));
    if (other !== undefined) await until("kube-proxy's is there", WAIT_MS, () => written(stage.kubeProxyNode));
    const [ours] = await eventsOf(stage, "Starting", stage.turnoutNode);
    const [theirs] = await eventsOf(stage, "Starting", stage.kubeProxyNode);
    if (ours === undefined) throw new Error("there is none");
    // The note says who it is; kube-proxy's is absent.
    if (theirs !== undefined) same(comparable({ ...ours, note: undefined }, stage.turnoutNode), comparable(theirs, stage.kubeProxyNode));
    return JSON.stringify(ours);
  });
}

/** When another program deletes our table, an event at the Node reports it once the table is back. */
export async function rulesChanged(stage: ApiServerStage): Promise<string> {
  const { turnoutNode } = stage;
  const nft = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await turnoutNode.run("nft", args);
    if (code !== 0) throw new Error(`nft ${args.join(" ")}: ${stderr}`);
    return stdout;
  };
  const turnout = await stage.turnout();
  return await withEnd([turnout], async () => {
    await until("rules are in force", WAIT_MS, () => turnout.log().split("first sync done").length === 3);
    await nft("delete", "table", "ip", "turnout");
    const reported = (): Promise<readonly StoredEvent[]> => eventsOf(stage, "RulesChangedByOthers", turnoutNode);
    await until("the event is there", WAIT_MS, async () => (await reported()).length > 0);
    const [event] = await reported();
    const { type, note = "" } = event ?? {};
    // Watching begins a moment after the first sync; until then it is not known who it was.
    const who =
      /for IPv4 were changed and are repaired \(\d+ objects\): (?:nft \(pid \d+\) changed table ip turnout|the ruleset changed before it was watched); removed table ip turnout\b/;
    if (type !== "Warning" || !who.test(note)) throw new Error(JSON.stringify(event));
    await nft("list", "chain", "ip", "turnout", "dispatch");
    return note;
  });
}

/** When another program uses a health check node port, an event at the Service reports it, as kube-proxy does. */
export async function healthPortTaken(stage: ApiServerStage): Promise<string> {
  const { turnoutNode, kubeProxyNode } = stage;
  const spec = {
    type: "LoadBalancer",
    externalTrafficPolicy: "Local",
    ipFamilyPolicy: "RequireDualStack",
    healthCheckNodePort: HEALTH_PORT,
    ports: [{ port: 80 }],
  };
  await stage.api.send([{ method: "POST", path: "/api/v1/namespaces/default/services", body: { metadata: { name: "gate" }, spec } }]);
  const takers: NodeProcess[] = [];
  for (const node of [turnoutNode, kubeProxyNode])
    for (const ip of ["0.0.0.0", "::"]) takers.push(await stage.takePort(node, HEALTH_PORT, ip));
  const turnout = await stage.turnout();
  const other = stage.kubeProxy === undefined ? undefined : await stage.startKubeProxy();
  const compare = async (): Promise<string> => {
    const reason = "FailedToStartServiceHealthcheck";
    await until("both events are there", WAIT_MS, async () => (await eventsOf(stage, reason, turnoutNode)).length === 2);
    if (other !== undefined)
      await until("kube-proxy's is there", WAIT_MS, async () => (await eventsOf(stage, reason, kubeProxyNode)).length > 0);
    const ours = (await eventsOf(stage, reason, turnoutNode)).map((event) => comparable(event, turnoutNode));
    const theirs = (await eventsOf(stage, reason, kubeProxyNode)).map((event) => comparable(event, kubeProxyNode));
    for (const event of theirs) if (!ours.some((one) => isDeepStrictEqual(one, event))) same(ours, theirs);
    return JSON.stringify(ours);
  };
  const remove = (): Promise<unknown> => stage.api.send([{ method: "DELETE", path: "/api/v1/namespaces/default/services/gate" }]);
  return await withEnd([turnout, other, ...takers], compare, remove);
}

/** With `--bind-address-hard-fail` the process ends, and the event is there. */
export async function hardFail(stage: ApiServerStage): Promise<string> {
  const { turnoutNode, kubeProxyNode } = stage;
  const reported: string[] = [];
  for (const [port, reason] of [
    [HEALTHZ_PORT, "FailedToStartProxierHealthcheck"],
    [METRICS_PORT, "FailedToStartMetricServer"],
  ] as const) {
    const takers = [await stage.takePort(turnoutNode, port, "127.0.0.1"), await stage.takePort(kubeProxyNode, port, "127.0.0.1")];
    const address = `127.0.0.1:${port}`;
    const which = port === HEALTHZ_PORT ? "healthz-bind-address" : "metrics-bind-address";
    const field = port === HEALTHZ_PORT ? "healthzBindAddress" : "metricsBindAddress";
    const turnout = await stage.turnout([`--${which}=${address}`, "--bind-address-hard-fail"]);
    const other = stage.kubeProxy === undefined ? undefined : await stage.startKubeProxy({ [field]: address, bindAddressHardFail: true });
    await withEnd([turnout, other, ...takers], async () => {
      const { code } = await turnout.ended();
      const theirs = await other?.ended();
      if (code !== 1) throw new Error(`Turnout ended with ${String(code)}: ${turnout.log().slice(-500)}`);
      const ours = (await eventsOf(stage, reason, turnoutNode)).map(({ note }) => note);
      if (ours.length !== 1) throw new Error(`${ours.length} events ${reason}`);
      const written = (await eventsOf(stage, reason, kubeProxyNode)).length;
      reported.push(String(ours[0]));
      if (other === undefined) return;
      // kube-proxy does not wait until its event is written.
      const words = /err="(.*)"/.exec(
        other
          .log()
          .split("\n")
          .findLast((line) => line.includes("listen tcp")) ?? "",
      )?.[1];
      if (words !== ours[0]) throw new Error(`Turnout: ${String(ours[0])}; kube-proxy: ${String(words)}`);
      reported.push(`  kube-proxy says the same, ended with ${String(theirs?.code)} and ${written} events`);
    });
  }
  return reported.join("\n");
}

/** Without the right to write events there is one line, and everything else goes on. */
export async function forbidden(stage: ApiServerStage): Promise<string> {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const { rules } = await stage.api.get<{ rules: { resources: string[] }[] }>(`${rbac}/clusterroles/system:node-proxier`);
  const metadata = { name: MUTE_USER };
  const subjects = [{ kind: "User", name: MUTE_USER, apiGroup: "rbac.authorization.k8s.io" }];
  const roleRef = { kind: "ClusterRole", name: MUTE_USER, apiGroup: "rbac.authorization.k8s.io" };
  await stage.api.send([
    {
      method: "POST",
      path: `${rbac}/clusterroles`,
      body: { metadata, rules: rules.filter(({ resources }) => !resources.includes("events")) },
    },
    { method: "POST", path: `${rbac}/clusterrolebindings`, body: { metadata, roleRef, subjects } },
  ]);
  const taker = await stage.takePort(stage.turnoutNode, HEALTHZ_PORT, "127.0.0.1");
  const turnout = await stage.turnout([`--healthz-bind-address=127.0.0.1:${HEALTHZ_PORT}`], MUTE_USER);
  return await withEnd([turnout, taker], async () => {
    await until("rules are in force", WAIT_MS, () => turnout.log().split("first sync done").length === 3);
    await until("the refusal is told", WAIT_MS, () => turnout.log().includes("was not written"));
    const lines = turnout
      .log()
      .split("\n")
      .filter((line) => /forbidden|403|event/i.test(line));
    if (lines.length !== 1) throw new Error(lines.join("\n"));
    return lines.join("");
  });
}
