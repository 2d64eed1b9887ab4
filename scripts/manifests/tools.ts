import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

/** What renders manifests, pinned: modules of Go, which builds them. */
export const TOOLS = {
  kustomize: "sigs.k8s.io/kustomize/kustomize/v5@v5.8.1",
  helm: "helm.sh/helm/v4/cmd/helm@v4.3.1",
} as const;

/** A function that runs a tool and gives what it prints. @throws {Error} what it says, when it fails. */
export type RunTool = (name: keyof typeof TOOLS, args: readonly string[]) => string;

/** Build the tools that aren't there yet: some minutes each. @throws {Error} what Go says. */
export function buildTools(root: string, say: (line: string) => void): RunTool {
  const folder = join(root, "out/cache/manifests");
  mkdirSync(folder, { recursive: true });
  const places = Object.entries(TOOLS).map(([name, module]) => {
    const place = join(folder, module.slice(module.lastIndexOf("@") + 1));
    if (!existsSync(join(place, name))) {
      say(`building ${module}`);
      execFileSync("go", ["install", module], { env: { ...process.env, GOBIN: place }, stdio: ["ignore", "ignore", "inherit"] });
    }
    return [name, join(place, name)] as const;
  });
  const programs = new Map<string, string>(places);
  return (name, args) => {
    const { status, stdout, stderr } = spawnSync(programs.get(name) ?? name, args, { cwd: root, encoding: "utf8" });
    if (status !== 0) throw new Error(`${name} ${args.join(" ")}: ${stderr}${stdout}`);
    return stdout;
  };
}
