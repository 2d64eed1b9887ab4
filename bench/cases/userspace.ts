import { spawnSync } from "node:child_process";
import { runRole } from "../role-process.ts";
import type { UserspaceParameters } from "../roles/userspace.ts";

/** Measure one carrier; a program of Debian's is installed where that can be done, and nothing is measured where it can't. */
export async function measureUserspace({
  packages,
  ...parameters
}: UserspaceParameters & { readonly packages?: string }): Promise<unknown> {
  const { carrier } = parameters;
  if (packages !== undefined) {
    // RUNLEVEL: a package's service is not to be started with it.
    const env = { ...process.env, RUNLEVEL: "1" };
    spawnSync("sh", ["scripts/host-setup.sh", `${carrier}:${packages}`], { stdio: "inherit", env });
    if (spawnSync(carrier, [carrier === "socat" ? "-V" : "-v"]).error !== undefined) return {};
  }
  return await runRole("userspace", parameters);
}
