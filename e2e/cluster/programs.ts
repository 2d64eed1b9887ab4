import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TOOLS = ["etcd", "coredns", "pause"];

/** Where everything of the cluster is kept: programs and packed images (made once), and what the cluster of the moment has. */
export interface Folders {
  /** Programs of one version of Kubernetes. */
  readonly kubernetes: string;
  /** Those that are the same with every version: etcd, coredns, pause. */
  readonly tools: string;
  /** Packed images for this version of Kubernetes. */
  readonly images: string;
  /** What goes with the cluster. */
  readonly run: string;
  /** What its programs write, and reports of suites; kept until the next cluster. */
  readonly logs: string;
}

/** What suites need, whatever the cluster is made of. */
export const SUITE_PROGRAMS: readonly string[] = ["kubectl", "ginkgo", "e2e.test"];

/** What a cluster in namespaces is made of, beside those. */
export const CLUSTER_PROGRAMS: readonly string[] = [
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "kube-proxy",
  "agnhost",
  "regression-issue-74839",
  ...TOOLS,
];

/** The folders below the one of `--directory`, of `TURNOUT_CLUSTER`, or of the user's cache. */
export function foldersOf(kubernetes: string, directory: string | undefined, env: Readonly<Record<string, string | undefined>>): Folders {
  const cache = env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const root = directory ?? env["TURNOUT_CLUSTER"] ?? join(cache, "turnout-cluster");
  const at = (name: string): string => join(root, name);
  return {
    kubernetes: at(`kubernetes-${kubernetes}`),
    tools: at("tools"),
    images: at(`images-${kubernetes}`),
    run: at("run"),
    logs: at("logs"),
  };
}

/** The path of a program. */
export function programAt({ kubernetes, tools }: Folders, name: string): string {
  return join(TOOLS.includes(name) ? tools : kubernetes, "bin", name);
}

/** Paths of what a suite is played with. */
export function suiteProgramsAt(folders: Folders): { readonly kubectl: string; readonly ginkgo: string; readonly e2eTest: string } {
  return { kubectl: programAt(folders, "kubectl"), ginkgo: programAt(folders, "ginkgo"), e2eTest: programAt(folders, "e2e.test") };
}

/** The programs that are not there yet. */
export function missingPrograms(folders: Folders, names: readonly string[]): readonly string[] {
  return names.filter((name) => {
    try {
      accessSync(programAt(folders, name), constants.X_OK);
      return false;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
      throw error;
    }
  });
}

/** Build what is missing; says how long that takes. @throws {Error} when a build fails: what was built stays, and the next try goes on from there. */
export async function buildPrograms(
  folders: Folders,
  version: string,
  names: readonly string[],
  say: (line: string) => void,
): Promise<void> {
  const missing = missingPrograms(folders, names);
  if (missing.length === 0) return;
  say(`building ${missing.join(" ")}: all of Kubernetes takes some 50 minutes on two cores, once; it is kept in ${folders.kubernetes}`);
  const ofKubernetes = missing.filter((name) => !TOOLS.includes(name));
  for (const args of [
    ...(missing.length > ofKubernetes.length ? [["tools", folders.tools]] : []),
    ...(ofKubernetes.length > 0 ? [["kubernetes", folders.kubernetes, version, ...ofKubernetes]] : []),
  ]) {
    const build = spawn(fileURLToPath(new URL("build.sh", import.meta.url)), args, { stdio: "inherit" });
    const [code] = (await once(build, "exit")) as [number | null];
    if (code !== 0) throw new Error(`build.sh ${args.join(" ")} ended with ${String(code)}; it needs Go, gcc and the Go module proxy`);
  }
}
