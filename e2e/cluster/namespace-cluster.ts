import { copyFile, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createWriteStream, rmSync } from "node:fs";
import type { ChildProcess } from "node:child_process";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { V1Node } from "@kubernetes/client-node";
import type { IPFamily } from "@turnout/core";
import { createCluster, createProcess, guardUntilExit } from "@turnout/lab";
import type { NodePlace, Place } from "@turnout/lab";
import { flagsOf, startControlPlane } from "../apiserver/control-plane.ts";
import type { ControlPlane } from "../apiserver/control-plane.ts";
import { until } from "../apiserver/until.ts";
import { FIXED_IPS, familiesOf, rangesFlag } from "./network-plan.ts";
import { nodeFiles } from "./node-files.ts";
import { programAt } from "./programs.ts";
import type { Folders } from "./programs.ts";
import { removeStage, writeStage } from "./stage-file.ts";
import type { StageFacts } from "./stage-file.ts";
import { createV1Cgroups, removeV1Cgroups } from "./v1-cgroups.ts";

/** What cluster to make. */
export interface NamespaceClusterOptions {
  readonly folders: Folders;
  readonly kubernetes: string;
  readonly primary: IPFamily;
  readonly nodes: number;
  /** The image of sandboxes, which is among the packed ones. */
  readonly pause: string;
  readonly say: (line: string) => void;
}

/** A cluster that lives in this process. */
export interface OwnCluster {
  readonly facts: StageFacts;
  /** Remove all of it; exit, SIGINT, SIGTERM and SIGHUP do so too. */
  destroy(): void;
}

const NODE_MS = 180_000;
const ZONES = 3;

/**
 * Make a real cluster of Kubernetes on this machine: etcd and the control plane in one network namespace; nodes with containerd and a kubelet in
 * namespaces and cgroups of their own. Needs root, and cgroup v1. Nodes are Ready at the end; there is no service proxy yet, and no DNS.
 */
export async function createNamespaceCluster(options: NamespaceClusterOptions): Promise<OwnCluster> {
  const { folders, kubernetes, primary, say } = options;
  await removeStage(folders);
  await Promise.all([rm(folders.logs, { recursive: true, force: true }), mkdir(folders.run, { recursive: true })]);
  await mkdir(folders.logs, { recursive: true });
  const names = Array.from({ length: options.nodes }, (_, index) => `node${index + 1}`);
  const cluster = await createCluster({
    // Tests of topology want three zones, some of them with two nodes in each.
    nodes: names.map((name, index) => ({ name, zone: `zone${(index % ZONES) + 1}`, pods: 0 })),
    families: familiesOf(primary),
    cgroups: names,
  });
  const namespaces = cluster.nodes.map(({ namespace }) => namespace);
  // After that of the laboratory, which ends the processes.
  const guard = guardUntilExit(() => {
    removeV1Cgroups(namespaces);
    rmSync(folders.run, { recursive: true, force: true });
  });
  const destroy = (): void => {
    cluster.destroy();
    guard.remove();
  };
  try {
    const fabric = withLogs(cluster.fabric, folders.logs);
    const plane = await startPlane(fabric, options);
    say(`the API server answers at ${cluster.fabric.address(primary)}`);
    const nodes = await Promise.all(cluster.nodes.map(async (node) => await startNode(node, plane, options)));
    await Promise.all(nodes.map(async (node) => await untilReady(plane, node, folders)));
    const facts: StageFacts = {
      kubernetes,
      primary,
      kubeconfig: await plane.kubeconfig("admin", "system:masters"),
      server: serverOf(cluster.fabric, primary),
      fabric: cluster.fabric.namespace,
      nodes: nodes.map(({ name, pid }) => ({ name, pid })),
    };
    writeStage(folders, facts);
    return { facts, destroy };
  } catch (error) {
    destroy();
    throw error;
  }
}

function serverOf(fabric: Place, primary: IPFamily): string {
  const address = fabric.address(primary);
  return `https://${primary === "IPv6" ? `[${address}]` : address}:6443`;
}

/** A place whose programs write to files, named after them, too. */
function withLogs(place: Place, logs: string): Place {
  return {
    ...place,
    spawn: (file, args, options) => {
      const child = place.spawn(file, args, options);
      const log = createWriteStream(join(logs, `${basename(file)}.log`), { flags: "a" });
      child.stdout?.pipe(log, { end: false });
      child.stderr?.pipe(log, { end: false });
      return child;
    },
  };
}

async function startPlane(fabric: Place, { folders, primary }: NamespaceClusterOptions): Promise<ControlPlane> {
  const program = (name: string): string => programAt(folders, name);
  const services = rangesFlag("services", primary);
  const dns = ["", ".default", ".default.svc", ".default.svc.cluster.local"].map((suffix) => `kubernetes${suffix}`);
  const folder = join(folders.run, "plane");
  const file = (name: string): string => join(folder, name);
  const plane = await startControlPlane(
    fabric,
    folder,
    { apiserver: program("kube-apiserver"), etcd: program("etcd") },
    {
      hosts: [fabric.address("IPv4"), fabric.address("IPv6"), ...Object.values(FIXED_IPS.api), ...dns],
      flags: {
        "bind-address": "::",
        "advertise-address": fabric.address(primary),
        "service-cluster-ip-range": services,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": true,
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        // The server's own certificate does for a client, too: kubelets ask only who signed it.
        "kubelet-client-certificate": file("server.crt"),
        "kubelet-client-key": file("server.key"),
        "kubelet-preferred-address-types": "InternalIP",
        // A suite of ten processes asks a lot.
        "max-requests-inflight": 2_000,
        "max-mutating-requests-inflight": 1_000,
        "audit-policy-file": undefined,
        "audit-log-path": undefined,
        "audit-log-mode": undefined,
      },
    },
  );
  createProcess(fabric).start(
    program("kube-controller-manager"),
    flagsOf({
      kubeconfig: await plane.kubeconfig("system:kube-controller-manager"),
      "use-service-account-credentials": true,
      "service-account-private-key-file": file("sa.key"),
      "root-ca-file": file("ca.crt"),
      "leader-elect": false,
      "allocate-node-cidrs": false,
      "cluster-cidr": rangesFlag("pods", primary),
      "service-cluster-ip-range": services,
      "kube-api-qps": 200,
      "kube-api-burst": 400,
      "concurrent-endpoint-syncs": 10,
      "concurrent-service-endpoint-syncs": 10,
    }),
  );
  createProcess(fabric).start(
    program("kube-scheduler"),
    flagsOf({ kubeconfig: await plane.kubeconfig("system:kube-scheduler"), "leader-elect": false }),
  );
  return plane;
}

/** A node, and the program that ends when its first process does. */
interface StartedNode {
  readonly name: string;
  readonly pid: number;
  readonly program: ChildProcess;
}

async function startNode(node: NodePlace, plane: ControlPlane, { folders, primary, pause }: NamespaceClusterOptions): Promise<StartedNode> {
  const { name, zone, podCIDRs } = node;
  const folder = join(folders.run, name);
  const labels = { "topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "here" };
  await plane.api.send([
    { method: "POST", path: "/api/v1/nodes", body: { metadata: { name, labels }, spec: { podCIDR: podCIDRs[0], podCIDRs } } },
  ]);
  const addresses = familiesOf(primary).map((family) => node.address(family));
  const facts = { name, addresses, podCIDRs, ca: plane.file("ca.crt"), dns: FIXED_IPS.dns[primary], pause };
  await mkdir(folder, { recursive: true });
  const cgroups = createV1Cgroups(node.namespace).map((cgroup) => `${cgroup.controller} ${cgroup.folder}\n`);
  const files = { ...nodeFiles(facts), cgroups: cgroups.join("") };
  await Promise.all(Object.entries(files).map(async ([file, text]) => await writeFile(join(folder, file), text)));
  await copyFile(await plane.kubeconfig(`system:node:${name}`, "system:nodes"), join(folder, "kubelet.conf"));
  await symlink(folders.images, join(folder, "images"));
  const env = {
    NODE: name,
    ADDRESSES: addresses.join(","),
    LOGS: folders.logs,
    PATH: `${join(folders.kubernetes, "bin")}:${process.env["PATH"] ?? ""}`,
  };
  const start = node.spawn(fileURLToPath(new URL("node-start.sh", import.meta.url)), [folder], { env });
  const log = createWriteStream(join(folders.logs, `${name}.log`));
  start.stdout?.pipe(log, { end: false });
  start.stderr?.pipe(log, { end: false });
  let pid: number | undefined;
  await until(`${name} has a first process`, NODE_MS, async () => {
    await refuseDead(name, start, folders);
    pid = await firstProcessOf(start.pid ?? 0);
    return pid !== undefined;
  });
  return { name, pid: pid ?? 0, program: start };
}

async function refuseDead(name: string, program: ChildProcess, { logs }: Folders): Promise<void> {
  if (program.exitCode === null && program.signalCode === null) return;
  const said = await readFile(join(logs, `${name}.log`), "utf8");
  throw new Error(`${name} has ended: ${said.slice(-500)}; see ${logs}`);
}

/** `unshare --fork` has one child, the first process of the namespaces; undefined: not yet. Nothing before it forks (node-start.sh). */
async function firstProcessOf(pid: number): Promise<number | undefined> {
  const [task] = await readdir(`/proc/${pid}/task`);
  const children = await readFile(`/proc/${pid}/task/${task ?? ""}/children`, "utf8");
  const [first] = children.split(" ").filter((word) => word !== "");
  return first === undefined ? undefined : Number(first);
}

async function untilReady({ api }: ControlPlane, { name, program }: StartedNode, folders: Folders): Promise<void> {
  await until(`${name} is Ready`, NODE_MS, async () => {
    await refuseDead(name, program, folders);
    // On a busy machine an answer may take longer than curl waits.
    const answer = await api.tryAsk({ method: "GET", path: `/api/v1/nodes/${name}` });
    if (answer?.status !== 200) return false;
    const { status } = JSON.parse(answer.body) as V1Node;
    return status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") ?? false;
  });
}
