import { spawnSync } from "node:child_process";
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";

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
    nft: /\d[\d.]*/.exec(spawnSync("nft", ["--version"], { encoding: "utf8" }).stdout ?? "")?.[0] ?? "none",
    node: process.version,
    cpus: availableParallelism(),
    cpuModel: cpus()[0]?.model.trim() ?? "unknown",
    memoryBytes: totalmem(),
    load: loadavg()[0] ?? 0,
  };
}

/** What a bench needs besides tools: a command of a shell that ends well where it is met, and what to do otherwise. `built` builds what has changed. */
const OWN: Readonly<Record<string, readonly [test: string, otherwise: string]>> = {
  "kube-proxy": [`"${process.env["KUBE_PROXY"] ?? "kube-proxy"}" --version`, "no kube-proxy: say KUBE_PROXY=path of one"],
  built: ["sh scripts/build.sh packages/cli", "the command can't be built: npm run build says why"],
};

/** Say why a need isn't met here, and what to do; undefined when it is. Needs are those of tests, `kube-proxy` and `built`. */
export function unmetNeed(need: string): string | undefined {
  const [test, otherwise] = OWN[need] ?? [];
  if (test === undefined) return needs(need).meta.unmetNeeds?.[0];
  return spawnSync("sh", ["-c", test], { cwd: ROOT }).status === 0 ? undefined : otherwise;
}
