import { createCluster } from "@turnout/lab";
import type { Cluster } from "@turnout/lab";
import { openRole, runRole } from "./role-process.ts";
import type { RoleProcess } from "./role-process.ts";
import type { BackendParameters, ComparedBackend } from "./roles/backend-run.ts";
import type { TrafficParameters, TrafficTarget } from "./roles/traffic.ts";
import { clusterIP, endpointsOf, NODE_PORT, nodeAddress, SERVICE_PORT, TARGET_PORT } from "./workload.ts";
import type { Shape } from "./workload.ts";

/** What a node serves with; `none`: it only forwards. */
export type TrafficRules = ComparedBackend | "none";

/** Where clients of a node are, as places of the laboratory. */
export type TrafficFrom = "pod-1-1" | "node1" | "client1";

/** How long clients measure. */
export type TrafficLength = Pick<TrafficParameters, "rounds" | "lengthMs" | "connects">;

/** A node with rules, a server in a pod, and clients. */
export interface TrafficNode {
  readonly rules: TrafficRules;
  /** Start a client there; it waits for its first turn. */
  open(from: TrafficFrom, length: TrafficLength): Promise<RoleProcess>;
  destroy(): void;
}

/** A pod of the workload's range, so that its source address is kept. */
const CLIENT_IP = "11.255.0.2";
const SERVER = "pod-1-2";

/** Make a node of the laboratory with all services in force. */
export async function createTrafficNode(rules: TrafficRules, shape: Shape): Promise<TrafficNode> {
  const shared: Shape = { ...shape, shared: true };
  const cluster = await createCluster({ nodes: [{ name: "node1", pods: 2 }], families: ["IPv4"], cgroups: ["node1"] });
  try {
    await addWorkload(cluster, shared);
    if (rules !== "none") {
      const parameters: BackendParameters = { backend: rules, shape: shared };
      await runRole("backend-rules", parameters, { place: cluster.node("node1") });
    }
    const addresses = endpointsOf(0, shared).map(({ ip }) => ip);
    const serverPid = await openRole("traffic-server", { addresses }, { place: cluster.place(SERVER) }).phase("listening");
    return {
      rules,
      open: async (from, length) => {
        const parameters: TrafficParameters = { ...length, targets: targetsOf(shared, from, rules !== "none"), serverPid };
        const client = openRole("traffic-client", parameters, { place: cluster.place(from) });
        await client.phase("turn");
        return client;
      },
      // Server and clients end with their places.
      destroy: () => cluster.destroy(),
    };
  } catch (error) {
    cluster.destroy();
    throw error;
  }
}

/** Give the pods and the node addresses of the workload, and everybody the ways there. */
async function addWorkload(cluster: Cluster, shape: Shape): Promise<void> {
  const ip = (place: string, line: string): Promise<unknown> => cluster.place(place).run("ip", line.split(" "));
  for (const { ip: address } of endpointsOf(0, shape)) {
    await ip(SERVER, `address add ${address}/32 dev eth0`);
    await ip("node1", `route add ${address}/32 dev veth2`);
    await cluster.routeTo(`${address}/32`, "node1");
  }
  await ip("pod-1-1", `address add ${CLIENT_IP}/32 dev eth0`);
  await ip("node1", `route add ${CLIENT_IP}/32 dev veth1`);
  await ip("pod-1-1", `route change default via 169.254.1.1 dev eth0 onlink src ${CLIENT_IP}`);
  await ip("node1", `address add ${nodeAddress()}/32 dev eth0`);
  await cluster.routeTo(`${nodeAddress()}/32`, "node1");
}

/** Clients outside ask at the node port, the others at a cluster IP. Without services the endpoint is asked twice: the ratio then shows what chance does. */
function targetsOf(shape: Shape, from: TrafficFrom, hasServices: boolean): readonly TrafficTarget[] {
  const [endpoint] = endpointsOf(0, shape);
  const direct = { address: endpoint?.ip ?? "", port: TARGET_PORT };
  const serviceAt = (index: number): Pick<TrafficTarget, "address" | "port"> => {
    if (!hasServices) return direct;
    return from === "client1" ? { address: nodeAddress(), port: NODE_PORT } : { address: clusterIP(index), port: SERVICE_PORT };
  };
  return [
    { ...direct, name: "direct", protocol: "TCP" },
    { ...direct, name: "direct UDP", protocol: "UDP" },
    { ...serviceAt(shape.services - 1), name: "service", protocol: "TCP" },
    { ...serviceAt(shape.services), name: "service UDP", protocol: "UDP" },
  ];
}
