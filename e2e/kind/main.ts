import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { kubectlFor } from "../cluster/kubectl.ts";

import { BACKENDS, CONTROLS, oneOf } from "../cluster/options.ts";
import { playAndTell } from "../cluster/play.ts";
import { buildPrograms, foldersOf, programAt, SUITE_PROGRAMS, suiteProgramsAt } from "../cluster/programs.ts";
import { WHOLE } from "../cluster/suite.ts";
import { deployTurnout, packTurnout } from "../cluster/turnout.ts";
import { createKindCluster, removeKindCluster } from "./cluster.ts";

const USAGE = `npm run e2e:kind -- [down] [options]
  The same as e2e:cluster on a cluster that kind makes. Needs kind and Docker.
  --backend NAME             ${BACKENDS.join(", ")}; or ${CONTROLS.join(", ")} (default nft)
  --ip-family NAME           ipv4, ipv6 or dual (default dual)
  --kubernetes VERSION       of the suite, and of the image of nodes (default 1.37.0, the choice of kind 0.33)
  --node-image IMAGE         the image of nodes (default: kind's choice)
  --image FILE               an archive of Turnout's image (default: it is packed, which needs Debian)
  --focus REGEXP, --procs N, --keep, --directory DIR   as with e2e:cluster
`;
const NAME = "turnout-e2e";
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    backend: { type: "string", default: "nft" },
    "ip-family": { type: "string", default: "dual" },
    kubernetes: { type: "string", default: "1.37.0" },
    "node-image": { type: "string" },
    image: { type: "string" },
    focus: { type: "string", default: WHOLE },
    procs: { type: "string", default: "10" },
    keep: { type: "boolean", default: false },
    directory: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

async function run(): Promise<boolean> {
  const proxy = oneOf("--backend", values.backend, [...BACKENDS, ...CONTROLS]);
  const ipFamily = oneOf("--ip-family", values["ip-family"], ["ipv4", "ipv6", "dual"]);
  const isControl = proxy.startsWith("kube-proxy-");
  const folders = foldersOf(values.kubernetes, values.directory, process.env);
  await buildPrograms(folders, values.kubernetes, SUITE_PROGRAMS, say);
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
      image: values["node-image"],
      kubeconfig: join(folder, "kubeconfig"),
    });
    if (cluster.kubernetes !== values.kubernetes)
      throw new Error(`the nodes have Kubernetes ${cluster.kubernetes}, the suite ${values.kubernetes}: give --kubernetes or --node-image`);
    const kubectl = kubectlFor(cluster, programAt(folders, "kubectl"));
    if (!isControl)
      await deployTurnout(
        { cluster, kubectl },
        proxy,
        values.image === undefined ? await packTurnout(proxy, join(folder, "image")) : resolve(values.image),
      );
    await kubectl(["-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout", "180s"]);
    const options = {
      proxy,
      focus: values.focus,
      procs: Number(values.procs),
      isAgain: false,
      where: "kind",
      ...suiteProgramsAt(folders),
      folder: folders.logs,
    } as const;
    return await playAndTell(cluster, options, say);
  } finally {
    if (values.keep) say(`the cluster is kept: remove it with npm run e2e:kind -- down`);
    else await remove();
  }
}

async function main(): Promise<boolean> {
  if (values.help) say(USAGE);
  else if (positionals.join(" ") === "down") await removeKindCluster(NAME);
  else if (positionals.length > 0) throw new Error(`${positionals.join(" ")}: down, or no word; see --help`);
  else return await run();
  return true;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  process.stderr.write(`e2e:kind: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
