import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCluster, createProcess } from "@turnout/lab";
import type { NodePlace, NodeProcess, Place } from "@turnout/lab";
import { TURNOUT } from "../proxy.ts";
import type { ApiClient } from "./api-client.ts";
import { startControlPlane } from "./control-plane.ts";
import type { ControlPlane, Programs } from "./control-plane.ts";

/** The user that kube-apiserver's own RBAC gives `system:node-proxier`, and no other right. */
export const PROXY_USER = "system:kube-proxy";

/** A real API server, and two nodes that reach it: one for Turnout, one for kube-proxy. */
export interface ApiServerStage {
  readonly plane: ControlPlane;
  readonly api: ApiClient;
  readonly kubeProxy: string | undefined;
  readonly turnoutNode: NodePlace;
  readonly kubeProxyNode: NodePlace;
  /** Where the API server is. */
  readonly fabric: Place;
  /** Start Turnout on its node, as a user; further flags come last. */
  turnout(flags?: readonly string[], user?: string): Promise<NodeProcess>;
  /** Start the real kube-proxy on its node, with further fields of its configuration. */
  startKubeProxy(fields?: Readonly<Record<string, unknown>>): Promise<NodeProcess>;
  /** Take a TCP port of a node, on all addresses of a family. */
  takePort(node: NodePlace, port: number, ip: string): Promise<NodeProcess>;
  destroy(): void;
}

/** Build it. @throws {Error} when the API server doesn't come up. */
export async function createApiServerStage(programs: Programs, kubeProxy: string | undefined): Promise<ApiServerStage> {
  const folder = await mkdtemp(join(tmpdir(), "turnout-apiserver-"));
  const cluster = await createCluster({
    nodes: [
      { name: "node1", pods: 1 },
      { name: "node2", pods: 1 },
    ],
  });
  // Also when this process is told to end.
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", removeFolder);
  const destroy = (): void => {
    cluster.destroy();
    removeFolder();
    process.off("exit", removeFolder);
  };
  const [turnoutNode, kubeProxyNode] = [cluster.node("node1"), cluster.node("node2")];
  try {
    const plane = await startControlPlane(cluster.fabric, folder, programs);
    for (const node of [turnoutNode, kubeProxyNode]) {
      const addresses = (["IPv4", "IPv6"] as const).map((family) => ({ type: "InternalIP", address: node.address(family) }));
      const path = "/api/v1/nodes";
      await plane.api.send([
        { method: "POST", path, body: { metadata: { name: node.name }, spec: { podCIDRs: node.podCIDRs } } },
        { method: "PATCH", path: `${path}/${node.name}/status`, body: { status: { addresses } } },
      ]);
    }
    return {
      plane,
      api: plane.api,
      kubeProxy,
      turnoutNode,
      kubeProxyNode,
      fabric: cluster.fabric,
      turnout: async (flags = [], user = PROXY_USER) => {
        const kubeconfig = await plane.kubeconfig(user);
        const proxy = createProcess(turnoutNode);
        proxy.start(TURNOUT, ["run", "--backend", "nft", "--kubeconfig", kubeconfig, "--hostname-override", "node1", ...flags]);
        return proxy;
      },
      startKubeProxy: async (fields = {}) => {
        if (kubeProxy === undefined) throw new Error("there is no kube-proxy");
        const config = join(folder, "kube-proxy.json");
        await writeFile(config, kubeProxyConfig(await plane.kubeconfig(PROXY_USER), fields));
        const proxy = createProcess(kubeProxyNode);
        proxy.start(kubeProxy, ["--config", config]);
        return proxy;
      },
      takePort: async (node, port, ip) => {
        const taker = createProcess(node);
        const script = `require("node:net").createServer().listen({ port: ${port}, host: "${ip}", ipv6Only: true }, () => console.log("taken"))`;
        taker.start(process.execPath, ["-e", script]);
        while (!taker.log().includes("taken")) await new Promise((resolve) => setTimeout(resolve, 20));
        return taker;
      },
      destroy,
    };
  } catch (error) {
    destroy();
    throw error;
  }
}

function kubeProxyConfig(kubeconfig: string, fields: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    hostnameOverride: "node2",
    clientConnection: { kubeconfig },
    // The size of the table is the whole machine's, not the namespace's.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    oomScoreAdj: 0,
    ...fields,
  });
}
