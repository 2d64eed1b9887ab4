import { readFile } from "node:fs/promises";
import type { KubeCluster } from "./kube-cluster.ts";
import { fill } from "./kubectl.ts";
import type { Kubectl } from "./kubectl.ts";

/** Where something is deployed, and how. */
export interface Deployment {
  readonly cluster: KubeCluster;
  readonly kubectl: Kubectl;
}

const ROLLOUT = "180s";

/** The ConfigMap that kubeadm makes for kube-proxy; an empty mode is kubeadm's own. */
export async function applyKubeadmConfig({ cluster, kubectl }: Deployment, mode: string): Promise<void> {
  const bind = cluster.families.startsWith("IPv6") ? "::" : "0.0.0.0";
  const values = { SERVER: cluster.server, MODE: mode, BIND: bind, PODS: cluster.pods };
  await kubectl(["apply", "-f", "-"], fill(await manifest("kube-proxy-config.yaml"), values));
}

/** The control: kube-proxy as kubeadm deploys it, on every node. */
export async function deployKubeProxy(options: Deployment, mode: string, image: string): Promise<void> {
  await applyKubeadmConfig(options, mode);
  await options.kubectl(["apply", "-f", "-"], fill(await manifest("kube-proxy.yaml"), { IMAGE: image }));
  await untilOut(options.kubectl, "kube-system", "daemonset/kube-proxy");
}

/** CoreDNS, at the cluster IP that pods ask. */
export async function deployCoreDNS({ kubectl }: Deployment, ip: string, image: string): Promise<void> {
  await kubectl(["apply", "-f", "-"], fill(await manifest("coredns.yaml"), { IP: ip, IMAGE: image }));
  await untilOut(kubectl, "kube-system", "deployment/coredns");
}

async function manifest(name: string): Promise<string> {
  return await readFile(new URL(name, import.meta.url), "utf8");
}

/** Wait until a workload is everywhere. @throws {Error} with what kubectl says of it. */
export async function untilOut(kubectl: Kubectl, namespace: string, workload: string): Promise<void> {
  try {
    await kubectl(["-n", namespace, "rollout", "status", workload, "--timeout", ROLLOUT]);
  } catch (error) {
    throw new Error(`${String(error)}\n${await kubectl(["-n", namespace, "describe", "pods"])}`, { cause: error });
  }
}
