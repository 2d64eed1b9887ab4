import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, closeSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { KubeCluster } from "./kube-cluster.ts";
import { readReport } from "./report.ts";
import type { TestResult } from "./report.ts";
import type { Skip } from "./skips.ts";

/** What to play. */
export interface SuiteOptions {
  /** A regular expression over the names of tests. */
  readonly focus: string;
  readonly skips: readonly Skip[];
  /** Tests at a time. */
  readonly procs: number;
  /** Where report and log go. */
  readonly folder: string;
  readonly ginkgo: string;
  readonly e2eTest: string;
  /** Tests call it too. */
  readonly kubectl: string;
}

/** All of sig-network. */
export const WHOLE = "\\[sig-network\\]";

/** Play Kubernetes' own end-to-end tests against a cluster. @throws {Error} when the run did not come to a report. */
export async function runSuite(cluster: KubeCluster, options: SuiteOptions): Promise<readonly TestResult[]> {
  const { folder, ginkgo, e2eTest } = options;
  await mkdir(folder, { recursive: true });
  const log = join(folder, "suite.log");
  const descriptor = openSync(log, "w");
  const [program = ginkgo, ...args] = [...cluster.before, ginkgo, ...ginkgoFlags(options), e2eTest, "--", ...suiteFlags(cluster, options)];
  const suite = spawn(program, args, { cwd: folder, stdio: ["ignore", descriptor, descriptor] });
  closeSync(descriptor);
  const [code] = (await once(suite, "exit")) as [number | null];
  try {
    return readReport(await readFile(join(folder, "report.json"), "utf8"));
  } catch (error) {
    throw new Error(`the suite ended with ${String(code)} and without a report: see ${log}`, { cause: error });
  }
}

function ginkgoFlags({ focus, skips, procs, folder }: SuiteOptions): readonly string[] {
  return [
    `--procs=${procs}`,
    "--no-color",
    `--focus=${focus}`,
    ...skips.map(({ match }) => `--skip=${match}`),
    "--timeout=3h",
    "--output-interceptor-mode=none",
    `--output-dir=${folder}`,
    "--json-report=report.json",
  ];
}

function suiteFlags({ kubeconfig, nodes }: KubeCluster, { kubectl }: SuiteOptions): readonly string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--kubectl-path=${kubectl}`,
    "--provider=skeleton",
    `--num-nodes=${nodes.length}`,
    "--node-os-distro=debian",
    "--allowed-not-ready-nodes=0",
    "--dump-logs-on-failure=false",
    "--disable-log-dump=true",
    "--delete-namespace=true",
  ];
}
