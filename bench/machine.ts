import { spawnSync } from "node:child_process";
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import type { Need } from "./case.ts";

/** What was measured on. */
export interface Machine {
  readonly kernel: string;
  readonly nft: string;
  readonly node: string;
  readonly cpus: number;
  readonly cpuModel: string;
  readonly memoryBytes: number;
  /** Load average of a minute, before the first run. */
  readonly load: number;
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Look at this machine. */
export function describeMachine(): Machine {
  return {
    kernel: release(),
    nft: /\d[\d.]*/.exec(tryProgram("nft", ["--version"]).output)?.[0] ?? "none",
    node: process.version,
    cpus: availableParallelism(),
    cpuModel: cpus()[0]?.model.trim() ?? "unknown",
    memoryBytes: totalmem(),
    load: loadavg()[0] ?? 0,
  };
}

/** Say why a need isn't met here, and what to do; undefined when it is. `built` builds what has changed. */
export function unmetNeed(need: Need): string | undefined {
  switch (need) {
    case "root":
      return tryProgram("unshare", ["--net", "true"]).isDone ? undefined : "network namespaces can't be made here: run it as root";
    case "nft":
      return tryProgram("nft", ["--version"]).isDone ? undefined : "nft is not installed: apt-get install nftables";
    case "ip":
      return tryProgram("ip", ["-V"]).isDone ? undefined : "ip is not installed: apt-get install iproute2";
    case "taskset":
      return tryProgram("taskset", ["--version"]).isDone ? undefined : "taskset is not installed: apt-get install util-linux";
    case "iptables":
      return ["legacy", "nft"].every((variant) => tryProgram(`iptables-${variant}`, ["--version"]).isDone)
        ? undefined
        : "both variants of iptables are not installed: apt-get install iptables";
    case "kube-proxy":
      return tryProgram(process.env["KUBE_PROXY"] ?? "kube-proxy", ["--version"]).isDone
        ? undefined
        : "no kube-proxy: say KUBE_PROXY=path of one";
    case "uml":
      return tryProgram("linux.uml", ["--version"]).isDone
        ? undefined
        : "user-mode Linux is not installed: apt-get install user-mode-linux kmod";
    case "ipvsadm":
      // Without IPVS in this kernel it can't be run here.
      return tryProgram("sh", ["-c", "command -v ipvsadm ipset"]).isDone
        ? undefined
        : "ipvsadm or ipset is not installed: apt-get install ipvsadm ipset";
    case "ebpf":
      return tryProgram("sh", [
        "-c",
        "test -e packages/backend-ebpf/dist/programs/sockets.bpf.o && grep -q ' - cgroup2 ' /proc/self/mountinfo",
      ]).isDone
        ? undefined
        : "the programs of eBPF are not built (npm run build, with clang), or cgroup v2 is not mounted";
    case "built": {
      const { isDone, output } = tryProgram("sh", ["scripts/build.sh", "packages/cli"]);
      return isDone ? undefined : `the command can't be built:\n${output}`;
    }
  }
}

function tryProgram(file: string, args: readonly string[]): { readonly isDone: boolean; readonly output: string } {
  const { error, status, stdout, stderr } = spawnSync(file, args, { encoding: "utf8", cwd: ROOT });
  return error === undefined ? { isDone: status === 0, output: `${stdout}${stderr}` } : { isDone: false, output: error.message };
}
