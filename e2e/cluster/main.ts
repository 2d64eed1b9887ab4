import { join } from "node:path";
import { runCommand } from "@turnout/house/command-line";
import { attachTo } from "./attached-cluster.ts";
import { installTools } from "./host-tools.ts";
import { referenceFor } from "./image-names.ts";
import { listedImages, packImages } from "./images.ts";
import { kubectlFor } from "./kubectl.ts";
import { controlFor, runMove } from "./moving/move.ts";
import { createNamespaceCluster } from "./namespace-cluster.ts";
import { FIXED_IPS } from "./network-plan.ts";
import { readCommand, USAGE } from "./options.ts";
import type { ClusterCommand } from "./options.ts";
import { buildPrograms, CLUSTER_PROGRAMS, foldersOf, programAt, SUITE_PROGRAMS, suiteProgramsAt } from "./programs.ts";
import type { Folders } from "./programs.ts";
import { deployCoreDNS, deployKubeProxy } from "./proxies.ts";
import { deployTurnout, packTurnout } from "./turnout.ts";
import { readStage, removeStage, writeStage } from "./stage-file.ts";
import type { StageFacts } from "./stage-file.ts";
import { runAndReport } from "./run-suite.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** The cluster that is kept, or a new one. */
async function findCluster(command: ClusterCommand, folders: Folders): Promise<{ facts: StageFacts; destroy: () => void; isNew: boolean }> {
  const kept = readStage(folders);
  if (kept === undefined) {
    installTools();
    await buildPrograms(folders, command.kubernetes, [...CLUSTER_PROGRAMS, ...SUITE_PROGRAMS], say);
    const listed = await listedImages(programAt(folders, "e2e.test"));
    await packImages(folders, listed);
    const { family: primary, kubernetes, nodes } = command;
    const own = await createNamespaceCluster({ folders, kubernetes, primary, nodes, pause: referenceFor("pause", listed), say });
    return { ...own, isNew: true };
  }
  const wanted = command.action === "move" ? controlFor(command.proxy) : command.proxy;
  const { proxy = wanted, kubernetes, primary } = kept;
  const asked = [wanted, command.kubernetes, command.family].join(" ");
  if (asked !== [proxy, kubernetes, primary].join(" "))
    throw new Error(
      `a cluster with ${proxy} ${kubernetes} ${primary} is kept, and not ${asked}: remove it with npm run e2e:cluster -- down`,
    );
  return { facts: kept, destroy: () => undefined, isNew: false };
}

async function deploy(command: ClusterCommand, folders: Folders, facts: StageFacts): Promise<void> {
  const cluster = attachTo(facts);
  const kubectl = kubectlFor(cluster, programAt(folders, "kubectl"));
  const { proxy, family } = command;
  const listed = await listedImages(programAt(folders, "e2e.test"));
  const deployment = { cluster, kubectl };
  if (proxy.startsWith("kube-proxy-"))
    await deployKubeProxy(deployment, proxy.slice("kube-proxy-".length), referenceFor("kube-proxy", listed));
  else await deployTurnout(deployment, proxy, await packTurnout(proxy, join(folders.run, "turnout-image")));
  writeStage(folders, { ...facts, proxy });
  say(`${proxy} runs on ${cluster.nodes.join(", ")}`);
  await deployCoreDNS(deployment, FIXED_IPS.dns[family], referenceFor("coredns", listed));
}

async function execute(command: ClusterCommand, folders: Folders, facts: StageFacts): Promise<boolean> {
  return await runAndReport(attachTo(facts), { ...command, ...suiteProgramsAt(folders), where: "namespaces", folder: folders.logs }, say);
}

/** The images that the runbook takes are on the nodes before, as it says. */
async function move(command: ClusterCommand, folders: Folders, facts: StageFacts): Promise<boolean> {
  const { proxy: backend } = command;
  await deploy({ ...command, proxy: controlFor(backend) }, folders, facts);
  const cluster = attachTo(facts);
  const program = programAt(folders, "kubectl");
  for (const name of new Set(["all", backend])) await cluster.load(await packTurnout(name, join(folders.run, `turnout-image-${name}`)));
  const image = "turnout.local/turnout:dev";
  return await runMove({ cluster, kubectl: kubectlFor(cluster, program), program, backend, image, say });
}

/** Until Ctrl-C, or the signal of `down`: then the guards of the cluster remove it. */
async function keep({ kubeconfig, fabric }: StageFacts): Promise<never> {
  say(`the cluster is kept until Ctrl-C, or: npm run e2e:cluster -- down`);
  say(`  ip netns exec ${fabric} kubectl --kubeconfig ${kubeconfig} get pods -A -o wide`);
  return await new Promise(() => setInterval(() => undefined, 1_000_000));
}

async function main(command: ClusterCommand): Promise<boolean> {
  const folders = foldersOf(command.kubernetes, command.directory, process.env);
  if (command.action === "down") {
    say(await removeStage(folders));
    return true;
  }
  const { facts, destroy, isNew } = await findCluster(command, folders);
  try {
    if (command.action === "move") return await move(command, folders, facts);
    await deploy(command, folders, facts);
    const isWell = command.action === "up" || (await execute(command, folders, facts));
    if (command.isKept && isNew) await keep(facts);
    return isWell;
  } finally {
    destroy();
  }
}

await runCommand({ name: "e2e:cluster", usage: USAGE, read: readCommand, execute: main });
