import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's folder: this file is in `scripts`, and built in `scripts/dist`. */
function repository(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const above = dirname(here);
  return existsSync(join(above, "scripts")) ? above : dirname(above);
}

/**
 * Compile the BPF programs of packages that were changed since, so that a test loads what is written: `buildBpf("packages/host")`.
 * @throws {Error} what clang says.
 */
export function buildBpf(...packages: readonly string[]): void {
  execFileSync("sh", ["scripts/build-bpf.sh", ...packages], { cwd: repository(), stdio: ["ignore", "inherit", "pipe"] });
}
