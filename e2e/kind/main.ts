import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { runCommand } from "@turnout/house/command-line";
import { kubectlFor } from "../cluster/kubectl.ts";
import { runAndReport } from "../cluster/run-suite.ts";
import { buildPrograms, foldersOf, programAt, SUITE_PROGRAMS, suiteProgramsAt } from "../cluster/programs.ts";
import { deployTurnout, packTurnout } from "../cluster/turnout.ts";
import { createKindCluster, removeKindCluster, requireKind } from "./cluster.ts";
import { readKindCommand, USAGE } from "./options.ts";
import type { KindCommand } from "./options.ts";

const NAME = "turnout-e2e";
const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function run(command: KindCommand): Promise<boolean> {
  const { proxy, ipFamily, kubernetes, focus, procs } = command;
  const isControl = proxy.startsWith("kube-proxy-");
  const folders = foldersOf(kubernetes, command.directory, process.env);
  // Before what takes an hour.
  await requireKind();
  await buildPrograms(folders, kubernetes, SUITE_PROGRAMS, say);
  const folder = await mkdtemp(join(tmpdir(), "turnout-kind-"));
  const remove = async (): Promise<void> => {
    await removeKindCluster(NAME);
    await rm(folder, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => void remove().finally(() => process.exit(1)));
  try {
    const cluster = await createKindCluster({
      name: NAME,
      ipFamily,
      kubeProxyMode: isControl ? (proxy === "kube-proxy-iptables" ? "iptables" : "nftables") : "none",
      image: command.nodeImage,
      kubeconfig: join(folder, "kubeconfig"),
    });
    if (cluster.kubernetes !== kubernetes)
      throw new Error(`the nodes have Kubernetes ${cluster.kubernetes}, the suite ${kubernetes}: give --kubernetes or --node-image`);
    const kubectl = kubectlFor(cluster, programAt(folders, "kubectl"));
    if (!isControl)
      await deployTurnout(
        { cluster, kubectl },
        proxy,
        command.image === undefined ? await packTurnout(proxy, join(folder, "image")) : resolve(command.image),
      );
    await kubectl(["-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout", "180s"]);
    const options = {
      proxy,
      focus,
      procs,
      isAgain: false,
      where: "kind",
      ...suiteProgramsAt(folders),
      folder: folders.logs,
    } as const;
    return await runAndReport(cluster, options, say);
  } finally {
    if (command.isKept) say(`the cluster is kept: remove it with npm run e2e:kind -- down`);
    else await remove();
  }
}

await runCommand({
  name: "e2e:kind",
  usage: USAGE,
  read: readKindCommand,
  execute: (command) => (command.action === "down" ? removeKindCluster(NAME) : run(command)),
});
