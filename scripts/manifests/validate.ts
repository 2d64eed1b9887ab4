import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Manifest } from "./variants.ts";

/** The kinds that our manifests have. */
const KINDS: ReadonlySet<string> = new Set([
  ...["ServiceAccount", "ConfigMap", "Namespace"].map((kind) => `v1/${kind}`),
  ...["DaemonSet", "Deployment"].map((kind) => `apps/v1/${kind}`),
  ...["ClusterRole", "ClusterRoleBinding"].map((kind) => `rbac.authorization.k8s.io/v1/${kind}`),
]);
const MODULES = fileURLToPath(new URL("../../node_modules/", import.meta.url));
const TYPES = join(MODULES, "@kubernetes/client-node/dist/gen/models");
const COMPILE = [
  "--noEmit",
  "--strict",
  "--skipLibCheck",
  "--module",
  "nodenext",
  "--types",
  "node",
  "--typeRoots",
  join(MODULES, "@types"),
];

/**
 * List what Kubernetes would not take of manifests: fields that are unknown, missing, or of another type. The compiler compares them with the types of
 * Kubernetes' own client, which are made from its OpenAPI document.
 *
 * Shape: a line for each problem; it begins with the manifest's index in the list, its kind and its name.
 */
export function problemsOf(manifests: readonly Manifest[]): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "turnout-manifests-"));
  try {
    const named = manifests.map((manifest, index) => ({ manifest, file: `${index}.${manifest.kind}.${manifest.metadata.name}.ts` }));
    const known = named.filter(({ manifest: { apiVersion, kind } }) => KINDS.has(`${apiVersion}/${kind}`));
    for (const { manifest, file } of known) {
      const type = `V1${manifest.kind}`;
      const text = `import type { ${type} } from "${TYPES}/${type}.js";\nexport const one: ${type} = ${JSON.stringify(manifest)};\n`;
      writeFileSync(join(folder, file), text);
    }
    const unknown = named
      .filter((one) => !known.includes(one))
      .map(({ manifest, file }) => `${file}: ${manifest.apiVersion} is not listed`);
    const args = [...COMPILE, ...known.map(({ file }) => file)];
    const { stdout } = spawnSync(join(MODULES, ".bin/tsc"), args, { cwd: folder, encoding: "utf8" });
    return [...unknown, ...stdout.split("\n").filter((line) => /^\S/.test(line))];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
