import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ImageConfig } from "./pod.ts";

interface Manifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string }[];
}

/** Unpack the archive of an image of one machine, as containerd does: its layers, one over the other. @throws {Error} what tar says. */
export function unpackImage(archive: string, folder: string): { readonly root: string; readonly config: ImageConfig } {
  const [layout, root] = [join(folder, "layout"), join(folder, "root")];
  for (const one of [layout, root]) mkdirSync(one, { recursive: true });
  execFileSync("tar", ["-xf", archive, "-C", layout]);
  const blob = (digest: string): string => join(layout, "blobs", digest.replace(":", "/"));
  const read = (path: string): unknown => JSON.parse(readFileSync(path, "utf8"));
  const { manifests } = read(join(layout, "index.json")) as { readonly manifests: readonly { readonly digest: string }[] };
  const { config, layers } = read(blob(manifests[0]?.digest ?? "")) as Manifest;
  for (const { digest } of layers) execFileSync("tar", ["-xzf", blob(digest), "-C", root, "--numeric-owner"]);
  return { root, config: (read(blob(config.digest)) as { readonly config: ImageConfig }).config };
}
