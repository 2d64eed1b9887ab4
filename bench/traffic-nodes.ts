import { once } from "node:events";
import { createLaboratory, nodeManifests, RANGES } from "@turnout/lab";
import type { EndpointManifest, Laboratory, Place } from "@turnout/lab";
import { startKind } from "./proxies.ts";
import type { ProxyKind } from "./proxies.ts";
import { openRole } from "./role-process.ts";
import type { RoleProcess } from "./role-process.ts";
import type { TrafficParameters } from "./roles/traffic.ts";
import { isOwn, targetOf } from "./traffic-targets.ts";
import type { TargetName, TrafficFrom } from "./traffic-targets.ts";
import { endpointAddress, FAMILIES, trafficObjects, trafficServices } from "./traffic-workload.ts";
import type { Shape } from "./workload.ts";

/** Whose rules a node has; without a proxy it only forwards. */
export interface TrafficRules {
  readonly name: string;
  readonly proxy: ProxyKind | undefined;
}

/** What clients measure, and how long. */
export interface TrafficLength extends Pick<TrafficParameters, "rounds" | "lengthMs" | "connects" | "measures"> {
  /** Of these, those that are there: a node without a proxy has no Services. */
  readonly asked: readonly TargetName[];
}

/** A node with rules, a server in a pod, and clients. */
export interface TrafficNode {
  readonly rules: TrafficRules;
  /** Start a client there; it waits for its first turn. */
  open(from: TrafficFrom, length: TrafficLength): Promise<RoleProcess>;
  destroy(): Promise<void>;
}

const NODE = "node1";
const SERVER = "pod-1-2";
/** Objects that are written at once. */
const CHUNK = 1_000;

/**
 * Make a node of the laboratory with the rules of all Services in force. The proxy runs as a user would start it, against an API server emulator, and is
 * ended when both families are in force: its rules stay, and it takes no CPU time while clients measure.
 */
export async function createTrafficNode(rules: TrafficRules, shape: Shape): Promise<TrafficNode> {
  const laboratory = await createLaboratory({ nodes: [{ name: NODE, pods: 2 }], cgroups: [NODE] });
  const { cluster, destroy } = laboratory;
  try {
    const [node, pod] = [cluster.node(NODE), cluster.place(SERVER)];
    const numbers = Array.from({ length: shape.endpoints }, (_, number) => number);
    const addresses = numbers.flatMap((number) => FAMILIES.map((family) => endpointAddress(number, family)));
    await giveAddresses(node, pod, "veth2", addresses);
    const endpoints = numbers.map((number): EndpointManifest => ({
      place: { ...pod, address: (family) => endpointAddress(number, family) },
    }));
    const services = trafficServices(shape);
    if (rules.proxy !== undefined) await makeActive(laboratory, rules.proxy, [...trafficObjects(services, endpoints)]);
    laboratory.api.close();
    const serverPid = await openRole("traffic-server", {}, { place: pod }).phase("listening");
    return {
      rules,
      open: async (from, length) => {
        const asked = length.asked.filter((name) => rules.proxy !== undefined || isOwn(name));
        const nodeAddress = { IPv4: node.address("IPv4"), IPv6: node.address("IPv6") };
        const targets = asked.flatMap((name) => targetOf(name, from, { services, endpoints: shape.endpoints, nodeAddress }) ?? []);
        const parameters: TrafficParameters = { ...length, targets, serverPid };
        const client = openRole("traffic-client", parameters, { place: cluster.place(from) });
        await client.phase("turn");
        return client;
      },
      // Server and clients end with their places.
      destroy,
    };
  } catch (error) {
    await destroy();
    throw error;
  }
}

/** Give a pod an address for each endpoint, and the node the ways there by its device. */
export async function giveAddresses(node: Place, pod: Place, device: string, addresses: readonly string[]): Promise<void> {
  for (const address of addresses) {
    const host = `${address}/${address.includes(":") ? 128 : 32}`;
    // The address is unused: no second is spent on looking for a duplicate.
    await pod.run("ip", ["address", "add", host, "dev", "eth0", ...(address.includes(":") ? ["nodad"] : [])]);
    await node.run("ip", ["route", "add", host, "dev", device]);
  }
}

async function makeActive({ cluster, api, kubeconfig, folder }: Laboratory, kind: ProxyKind, objects: readonly object[]): Promise<void> {
  await api.apply(nodeManifests(cluster));
  for (let from = 0; from < objects.length; from += CHUNK) await api.apply(objects.slice(from, from + CHUNK));
  const clusterCIDR = FAMILIES.map((family) => RANGES.pods[family]).join(",");
  const kubeProxy = process.env["KUBE_PROXY"] ?? "kube-proxy";
  const { child } = await startKind(kind, { node: cluster.node(NODE), kubeconfig, clusterCIDR, folder, kubeProxy });
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}
