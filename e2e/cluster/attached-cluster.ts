import { createExec } from "@turnout/host";
import type { KubeCluster } from "./kube-cluster.ts";
import { rangesFlag } from "./network-plan.ts";
import type { StageFacts } from "./stage-file.ts";

/** A cluster in namespaces as suites see it, this process's or another's. */
export function attachTo({ kubernetes, primary, kubeconfig, server, fabric, nodes }: StageFacts): KubeCluster {
  const exec = createExec();
  return {
    kubernetes,
    families: primary === "IPv4" ? "IPv4, IPv6" : "IPv6, IPv4",
    pods: rangesFlag("pods", primary),
    kubeconfig,
    server,
    nodes: nodes.map(({ name }) => name),
    before: ["ip", "netns", "exec", fabric],
    load: async (archive) => {
      for (const { name, pid } of nodes) {
        const args = ["-t", String(pid), "-m", "-n", "-p", "-u", "-i", "-C", "--", "ctr", "-n", "k8s.io", "images", "import", archive];
        const result = await exec.run("nsenter", args, { timeoutMs: 600_000 });
        if (result.code !== 0) throw new Error(`${archive} on ${name}: ${result.stderr.trim()}`);
      }
    },
  };
}
