import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createExec } from "@turnout/host";
import { IMAGE_RECIPES, referencesOf } from "./image-names.ts";
import type { ImageRecipe } from "./image-names.ts";
import type { Folders } from "./programs.ts";

const exec = createExec();
const LIMIT_MS = 1_200_000;

async function run(file: string, args: readonly string[]): Promise<string> {
  const result = await exec.run(file, args, { timeoutMs: LIMIT_MS });
  if (result.code !== 0) throw new Error(`${file} ${args.join(" ")}: ${result.stderr.trim()}`);
  return result.stdout;
}

/** The images that the suite asks for, by reference, sorted. */
export async function listedImages(e2eTest: string): Promise<readonly string[]> {
  return (await run(e2eTest, ["--list-images"])).trim().split("\n").toSorted();
}

/**
 * Pack the images of a cluster from this machine's programs: nothing is pulled. Archives are named after their recipes. Done once, and again when a
 * recipe has changed.
 */
export async function packImages(folders: Folders, listed: readonly string[]): Promise<void> {
  const script = fileURLToPath(new URL("image-roots.sh", import.meta.url));
  const facts = JSON.stringify([IMAGE_RECIPES, listed, await readFile(script, "utf8")]);
  const kept = join(folders.images, "recipes.json");
  if (existsSync(kept) && (await readFile(kept, "utf8")) === facts) return;
  await rm(folders.images, { recursive: true, force: true });
  const roots = `${folders.images}.roots`;
  const fresh = `${folders.images}.new`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { recursive: true });
  await run(script, [roots, folders.kubernetes, folders.tools]);
  for (const recipe of IMAGE_RECIPES) await pack(recipe, referencesOf(recipe, listed), join(roots, recipe.name), fresh);
  await rm(roots, { recursive: true });
  await writeFile(join(fresh, "recipes.json"), facts);
  await rename(fresh, folders.images);
}

/** A file tree as a docker archive of one layer. */
async function pack(
  { name, entrypoint, command }: ImageRecipe,
  references: readonly string[],
  root: string,
  folder: string,
): Promise<void> {
  const work = join(folder, `${name}.parts`);
  await mkdir(work);
  const layer = join(work, "layer.tar");
  await run("tar", ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-cf", layer, "-C", root, "."]);
  const config = JSON.stringify({
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    os: "linux",
    config: { Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], Entrypoint: entrypoint, Cmd: command },
    rootfs: { type: "layers", diff_ids: [`sha256:${await checksumOf(layer)}`] },
  });
  const configName = `${createHash("sha256").update(config).digest("hex")}.json`;
  const manifest = JSON.stringify([{ Config: configName, RepoTags: references, Layers: ["layer.tar"] }]);
  await Promise.all([writeFile(join(work, configName), config), writeFile(join(work, "manifest.json"), manifest)]);
  await run("tar", ["-cf", join(folder, `${name}.tar`), "-C", work, "."]);
  await rm(work, { recursive: true });
}

async function checksumOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
