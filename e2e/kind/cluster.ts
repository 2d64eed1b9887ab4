import { createExec } from "@turnout/host";
import { stringify } from "yaml";
import type { Families, KubeCluster } from "../cluster/kube-cluster.ts";

/** kind's word for the families of a cluster. */
export type IpFamily = "ipv4" | "ipv6" | "dual";

/** What cluster kind is to make. */
export interface KindOptions {
  readonly name: string;
  readonly ipFamily: IpFamily;
  /** `none` for Turnout; a mode of kube-proxy for the control. */
  readonly kubeProxyMode: "none" | "nftables" | "iptables";
  /** The image of nodes; undefined: kind's own choice. */
  readonly image: string | undefined;
  /** Where the kubeconfig goes. */
  readonly kubeconfig: string;
}

/** kind's own ranges of pods. @source sigs.k8s.io/kind pkg/apis/config/v1alpha4/default.go, v0.33.0 */
const PODS = { ipv4: "10.244.0.0/16", ipv6: "fd00:10:244::/56", dual: "10.244.0.0/16,fd00:10:244::/56" };
const FAMILIES: Readonly<Record<IpFamily, Families>> = { ipv4: "IPv4", ipv6: "IPv6", dual: "IPv4, IPv6" };

const exec = createExec();
/** The image of nodes may have to be pulled. */
const LIMIT_MS = 1_200_000;

async function kind(args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await exec.run("kind", args, { timeoutMs: LIMIT_MS, ...(input === undefined ? {} : { input }) });
  if (code !== 0) throw new Error(`kind ${args.join(" ")}: ${stderr.trim()}; it needs kind 0.33 and Docker`);
  return stdout;
}

/** What kind reads: a node for the control plane, and two workers. Pure. */
export function configOf({ ipFamily, kubeProxyMode }: Pick<KindOptions, "ipFamily" | "kubeProxyMode">): string {
  return stringify({
    kind: "Cluster",
    apiVersion: "kind.x-k8s.io/v1alpha4",
    networking: { ipFamily, kubeProxyMode },
    nodes: [{ role: "control-plane" }, { role: "worker" }, { role: "worker" }],
  });
}

/** See that kind and Docker are there. @throws {Error} what is missing, and what to install. */
export async function requireKind(): Promise<void> {
  for (const [file, ...args] of [
    ["kind", "version"],
    ["docker", "version", "--format", "{{.Server.Version}}"],
  ] as const) {
    const { code, stderr } = await exec
      .run(file, args)
      .catch((error: unknown) => ({ code: 1, stderr: error instanceof Error ? error.message : String(error) }));
    if (code !== 0)
      throw new Error(`${file}: ${stderr.trim()}; e2e:kind needs kind 0.33 and Docker that runs. Without them: npm run e2e:cluster`);
  }
}

/** Make a cluster with kind. @throws {Error} what kind says. */
export async function createKindCluster(options: KindOptions): Promise<KubeCluster> {
  const { name, ipFamily, image, kubeconfig } = options;
  const flags = ["--name", name, "--kubeconfig", kubeconfig, "--config", "-", "--wait", "5m"];
  await kind(["create", "cluster", ...flags, ...(image === undefined ? [] : ["--image", image])], configOf(options));
  const nodes = (await kind(["get", "nodes", "--name", name])).trim().split("\n");
  const version = await exec.run("docker", ["exec", `${name}-control-plane`, "cat", "/kind/version"]);
  if (version.code !== 0) throw new Error(`/kind/version of ${name}: ${version.stderr.trim()}`);
  return {
    kubernetes: version.stdout.trim().replace(/^v/, ""),
    families: FAMILIES[ipFamily],
    pods: PODS[ipFamily],
    // Tests run on workers: the control plane's node has a taint.
    nodes: nodes.filter((node) => !node.endsWith("-control-plane")),
    kubeconfig,
    server: `https://${name}-control-plane:6443`,
    before: [],
    load: async (archive) => void (await kind(["load", "image-archive", archive, "--name", name])),
  };
}

/** Remove it; one that is not there is fine. */
export async function removeKindCluster(name: string): Promise<void> {
  await kind(["delete", "cluster", "--name", name]);
}
