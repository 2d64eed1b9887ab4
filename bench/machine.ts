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

/** `test`: a command of a shell that ends well where the need is met. */
type Met = Readonly<Record<"test" | "otherwise", string>>;

const installed = (program: string, packages: string, test = `${program} --version`): Met => ({
  test,
  otherwise: `${program} is not installed: apt-get install ${packages}`,
});

/** `built` builds what has changed. Without IPVS in this kernel ipvsadm can't be run here. */
const NEEDS: Readonly<Record<Need, Met>> = {
  root: { test: "unshare --net true", otherwise: "network namespaces can't be made here: run it as root" },
  nft: installed("nft", "nftables"),
  ip: installed("ip", "iproute2", "ip -V"),
  taskset: installed("taskset", "util-linux"),
  iptables: installed("a variant of iptables", "iptables", "iptables-legacy --version && iptables-nft --version"),
  "kube-proxy": {
    test: `"${process.env["KUBE_PROXY"] ?? "kube-proxy"}" --version`,
    otherwise: "no kube-proxy: say KUBE_PROXY=path of one",
  },
  uml: installed("user-mode Linux", "user-mode-linux kmod", "linux.uml --version"),
  ipvsadm: installed("ipvsadm or ipset", "ipvsadm ipset", "command -v ipvsadm ipset"),
  ebpf: {
    test: "test -e packages/backend-ebpf/dist/programs/sockets.bpf.o && grep -q ' - cgroup2 ' /proc/self/mountinfo",
    otherwise: "the programs of eBPF are not built (npm run build, with clang), or cgroup v2 is not mounted",
  },
  built: { test: "sh scripts/build.sh packages/cli", otherwise: "the command can't be built: npm run build says why" },
};

/** Say why a need isn't met here, and what to do; undefined when it is. */
export function unmetNeed(need: Need): string | undefined {
  const { test, otherwise } = NEEDS[need];
  return tryProgram("sh", ["-c", test]).isDone ? undefined : otherwise;
}

function tryProgram(file: string, args: readonly string[]): { readonly isDone: boolean; readonly output: string } {
  const { error, status, stdout, stderr } = spawnSync(file, args, { encoding: "utf8", cwd: ROOT });
  return error === undefined ? { isDone: status === 0, output: `${stdout}${stderr}` } : { isDone: false, output: error.message };
}
