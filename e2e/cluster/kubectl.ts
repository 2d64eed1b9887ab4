import { createExec } from "@turnout/host";
import type { KubeCluster } from "./kube-cluster.ts";

const exec = createExec();
/** Longer than what `rollout status` is given. */
const LIMIT_MS = 300_000;

/** Asks a cluster by kubectl, as its administrator; resolves to what it prints. @throws {Error} with what it complains about. */
export type Kubectl = (args: readonly string[], input?: string) => Promise<string>;

/** kubectl for a cluster; `program` is its path. */
export function kubectlFor({ before, kubeconfig }: KubeCluster, program: string): Kubectl {
  return async (args, input) => {
    const [file = program, ...rest] = [...before, program, "--kubeconfig", kubeconfig, ...args];
    const { code, stdout, stderr } = await exec.run(file, rest, { timeoutMs: LIMIT_MS, ...(input === undefined ? {} : { input }) });
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stderr.trim() || stdout.trim()}`);
    return stdout;
  };
}

/** Fill the `@NAMES@` of a manifest. @throws {Error} for one without a value. */
export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/@([A-Z]+)@/g, (_whole, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`no value for @${name}@`);
    return value;
  });
}
