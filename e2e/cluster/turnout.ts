import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createExec } from "@turnout/host";
import { applyKubeadmConfig, untilOut } from "./proxies.ts";
import type { Deployment } from "./proxies.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Turnout by its own image (an archive of it) and manifest on every node, with kubeadm's ConfigMap for kube-proxy. Deployed once more, it runs the
 * image of now.
 */
export async function deployTurnout(options: Deployment, backend: string, image: string): Promise<void> {
  const { cluster, kubectl } = options;
  await cluster.load(image);
  await applyKubeadmConfig(options, "");
  const workload = "daemonset/turnout";
  const isThere = (await kubectl(["-n", "kube-system", "get", workload, "--ignore-not-found", "-o", "name"])) !== "";
  await kubectl(["apply", "-k", join(ROOT, "deploy/kubernetes/overlays", backend)]);
  // The same tag may be another image.
  if (isThere) await kubectl(["-n", "kube-system", "rollout", "restart", workload]);
  await untilOut(kubectl, "kube-system", workload);
}

const PACK_MS = 1_200_000;

/** Pack the image of a backend, from the checkout as it is now, into a folder; returns the archive's path. */
export async function packTurnout(backend: string, folder: string): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const exec = createExec();
  const npm = async (...args: readonly string[]): Promise<void> => {
    const { code, stderr } = await exec.run("npm", ["--prefix", ROOT, "run", "--silent", ...args], { timeoutMs: PACK_MS });
    if (code !== 0) throw new Error(`npm run ${args.join(" ")}: ${stderr.trim()}`);
  };
  await npm("build");
  await npm("image", "--", "--backend", backend, "--out", folder);
  const [archive] = (await readdir(folder)).filter((name) => name.endsWith(".tar"));
  if (archive === undefined) throw new Error(`npm run image -- --backend ${backend} wrote no archive to ${folder}`);
  return join(folder, archive);
}
