import type { ChildProcess } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { addressesOf, STAGE_NODE, STAGE_OBJECTS, STAGE_RANGES } from "@turnout/conformance";
import { FAMILIES } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import { createLaboratory, DETOUR_TABLE, routeByFirstNode, serviceManifest, sliceManifests } from "@turnout/lab";
import type { Cluster, Laboratory, Place } from "@turnout/lab";
import { kubeProxyConfig } from "../kube-proxy/process.ts";
import { HOST_PROXIES, startKind } from "../proxies.ts";
import type { HostProxy } from "../proxies.ts";
import { UNTOUCHED } from "./compare.ts";
import { nodeAddresses, UNUSED_PORT, writesBetween } from "./questions.ts";
import { HELD_BALANCER, SERVER_PORTS, SERVICE_PORTS, SERVICES, SPARE } from "./world.ts";
import type { Setup } from "./world.ts";

const MARKER: Readonly<Record<IPFamily, string>> = { IPv4: "10.96.255.254", IPv6: "fd00:96::fffe" };
const MARKER_PORT = 7;
/** For a proxy to follow the API server on a busy machine. */
const FOLLOW_MS = 60_000;
/** What leaves the node by its uplink for addresses of Services is for this routing table of the fabric. */
const ARRIVED = "98";

/** One of the two proxies, in a laboratory of its own: both are the same, and so is what their API servers have. */
export interface Side {
  readonly name: HostProxy;
  readonly cluster: Cluster;
}

/** Both proxies. */
export interface Stage {
  readonly turnout: Side;
  readonly kubeProxy: Side;
  /** Have both API servers hold these objects besides the stage's, and wait until both proxies follow. @throws {Error} naming the one that doesn't. */
  become(objects: readonly RawObject[]): Promise<void>;
  destroy(): Promise<void>;
}

/** Which proxies, and how they are configured. */
export interface StageOptions {
  readonly turnout: HostProxy;
  readonly kubeProxy: HostProxy;
  /** Path of the real kube-proxy. */
  readonly program: string;
  readonly setup: Setup;
}

/** Build a stage. @throws {Error} what building it failed with; nothing is left. */
export async function createDifferentialStage(options: StageOptions): Promise<Stage> {
  const sides: Running[] = [];
  const destroy = async (): Promise<void> => {
    for (const side of sides) await side.destroy();
  };
  try {
    for (const name of [options.turnout, options.kubeProxy]) sides.push(await build(name));
    await Promise.all(sides.map((side) => start(side, options)));
    const [turnout, kubeProxy] = sides as [Running, Running];
    return { turnout, kubeProxy, become: follower(sides), destroy };
  } catch (error) {
    await destroy();
    throw error;
  }
}

interface Running extends Side, Laboratory {
  readonly cluster: Cluster;
  proxy?: ChildProcess;
}

async function build(name: HostProxy): Promise<Running> {
  const nodes = [
    { name: STAGE_NODE, zone: "zone-a", pods: 2 },
    { name: "node2", zone: "zone-b", pods: 2 },
  ];
  const laboratory = await createLaboratory({ nodes, cgroups: name.includes("ebpf") ? [STAGE_NODE] : [] }, async (cluster) => {
    await layRoutes(cluster);
    await startServers(cluster);
  });
  return { ...laboratory, name };
}

async function start(side: Running, { program, setup: { fields } }: StageOptions): Promise<void> {
  const { name, cluster, api, kubeconfig, folder } = side;
  // kube-proxy 1.37.2 often misses the zone that its Node has when it starts (it registers for changes behind the first one).
  await api.apply(STAGE_OBJECTS.map((object) => ({ ...object, metadata: { ...(object["metadata"] as RawObject), labels: {} } })));
  const kind = HOST_PROXIES[name];
  const config = join(folder, "config.json");
  const mode = name.includes("iptables") ? "iptables" : "nftables";
  await writeFile(config, kubeProxyConfig({ mode, nodeName: STAGE_NODE, kubeconfig, fields }));
  const { child } = await startKind(kind.program === "turnout" ? { ...kind, flags: [...kind.flags, "--config", config] } : kind, {
    node: cluster.node(STAGE_NODE),
    kubeconfig,
    clusterCIDR: FAMILIES.map((family) => STAGE_RANGES.pods[family]).join(","),
    folder,
    kubeProxy: program,
    fields,
  });
  side.proxy = child;
  await api.apply(STAGE_OBJECTS);
}

/**
 * Send everything that clients and the other node's pods send by way of node1, and its answers back the same way. Packets for addresses of Services
 * that node1 leaves as they are arrive at the fabric, which has servers there.
 */
async function layRoutes(cluster: Cluster): Promise<void> {
  const { fabric } = cluster;
  const first = cluster.node(STAGE_NODE);
  const run = (place: Place, lines: readonly string[]): Promise<unknown> => place.run("sh", ["-ec", lines.join("\n")]);
  await routeByFirstNode(cluster);
  await run(fabric, ["echo 1 >/proc/sys/net/ipv4/ip_nonlocal_bind", "echo 1 >/proc/sys/net/ipv6/ip_nonlocal_bind"]);
  for (const family of FAMILIES) {
    const ip = family === "IPv4" ? "ip -4" : "ip -6";
    await run(fabric, [
      ...[STAGE_RANGES.services[family], STAGE_RANGES.external[family]].flatMap((range) => [
        `${ip} route add local ${range} dev lo table ${ARRIVED}`,
        `${ip} rule add iif br0 to ${range} lookup ${ARRIVED}`,
        `${ip} rule add iif lo from ${range} lookup ${DETOUR_TABLE}`,
      ]),
      `${ip} route add ${SPARE[family]} via ${first.address(family)}`,
    ]);
    // Deprecated, so that what is masqueraded gets the primary address.
    const quietly = family === "IPv6" ? "nodad preferred_lft 0" : "";
    const bits = family === "IPv4" ? 32 : 128;
    await run(
      first,
      [SPARE, HELD_BALANCER].map((pair) => `${ip} address add ${pair[family]}/${bits} dev eth0 ${quietly}`),
    );
  }
}

/** Endpoints on pods and nodes, and servers that say that no proxy translated what reached them. */
async function startServers(cluster: Cluster): Promise<void> {
  const places = [...cluster.nodes, ...cluster.nodes.flatMap((node) => node.pods)];
  const numbers = Array.from({ length: SERVICES }, (_, index) => index + 1);
  const ports = [...SERVICE_PORTS, UNUSED_PORT];
  const nodePorts = numbers.flatMap((number) => [30_000 + number, 30_010 + number]);
  const outside = FAMILIES.flatMap((family) =>
    numbers.flatMap((number) => (["clusterIP", "externalIP", "loadBalancerIP"] as const).map((way) => addressesOf(number, way)[family])),
  );
  const leftAlone = async (place: Place, onPorts: readonly number[], addresses: readonly string[]): Promise<void> => {
    const agent = place.agent();
    await Promise.all(
      onPorts.flatMap((port) => [
        agent.serve({ name: UNTOUCHED, transport: "TCP", port }),
        ...addresses.map((address) => agent.serve({ name: UNTOUCHED, transport: "UDP", port, address })),
      ]),
    );
  };
  await Promise.all([
    ...places.flatMap((place) =>
      SERVER_PORTS.flatMap((port) =>
        (["TCP", "UDP"] as const).map((transport) => place.agent().serve({ name: `${place.name}:${port}`, transport, port })),
      ),
    ),
    cluster.place("pod-1-1").agent().serve({ name: "marker", transport: "TCP", port: MARKER_PORT }),
    leftAlone(cluster.fabric, ports, outside),
    leftAlone(cluster.node(STAGE_NODE), [...ports, ...nodePorts], FAMILIES.flatMap(nodeAddresses)),
  ]);
}

/**
 * Both proxies have everything in force once a Service, which is changed last, answers at a new port: watches deliver in order, and the port and its
 * endpoint come by the two watches that matter.
 */
function follower(sides: readonly Running[]): Stage["become"] {
  let now: readonly RawObject[] = [];
  let round = 0;
  return async (objects) => {
    const writes = writesBetween(now, objects);
    now = objects;
    round += 1;
    const port = 10_000 + round;
    const marker = {
      namespace: "differential",
      name: "marker",
      clusterIPs: FAMILIES.map((family) => MARKER[family]),
      ports: [{ name: `round-${round}`, port, targetPort: MARKER_PORT }],
    };
    await Promise.all(
      sides.map(async (side) => {
        for (const write of writes) await ("put" in write ? side.api.apply([write.put]) : side.api.delete(write.remove));
        await side.api.apply([serviceManifest(marker), ...sliceManifests(marker, [{ place: side.cluster.place("pod-1-1") }], FAMILIES)]);
        await Promise.all(FAMILIES.map((family) => follows(side, family, port)));
      }),
    );
  };
}

async function follows({ name, cluster, proxy }: Running, family: IPFamily, port: number): Promise<void> {
  const agent = cluster.node(STAGE_NODE).agent();
  for (const untilMs = performance.now() + FOLLOW_MS; ; await sleep(20)) {
    const { outcome, server } = await agent.attempt({ address: MARKER[family], port, timeoutMs: 200 });
    if (outcome === "ok" && server === "marker") return;
    if (proxy?.exitCode !== null || proxy.signalCode !== null) throw new Error(`${name} ended`);
    if (performance.now() > untilMs) throw new Error(`${name} does not follow the API server (${family})`);
  }
}
