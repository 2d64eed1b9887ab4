import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runChangesets, runIsolated, type NpmSettings } from "./npm.ts";
import { publicPackages, type Manifest } from "./packages.ts";

/** A packed package: the file, and what says that it is this one and no other. */
export interface Packed extends Pick<Manifest, "name" | "version"> {
  /** Path of the tarball, from the list. */
  readonly file: string;
  /** As npm and every lockfile write it: `sha512-…`. */
  readonly integrity: string;
}

/** An exact build: what was tested is what is published, and what goes from channel to channel. */
export interface Build {
  readonly folder: string;
  /** In the order in which they can be published. */
  readonly packages: readonly Packed[];
}

const LIST = "build.json";

/** What changesets writes next to the tarballs it packs: those that can be published at one time, in order. */
interface PublishPlan {
  readonly plan: readonly (readonly (Manifest & { readonly tarball: { readonly path: string } })[])[];
}

/** Have changesets pack every public package that the registry does not have, fetch the others from there, and write the list of all into the folder. */
export async function pack(npm: NpmSettings, root: string, folder: string): Promise<Build> {
  await runChangesets(npm, root, ["pack", "--out-dir", folder]);
  const { plan } = JSON.parse(await readFile(join(folder, "publish-plan.json"), "utf8")) as PublishPlan;
  const files = plan.flat().map(({ name, version, tarball }) => ({ name, version, file: tarball.path }));
  for (const { name, version } of await publicPackages(root)) {
    if (files.some((one) => one.name === name)) continue;
    const file = (await runIsolated(npm, folder, ["npm", "pack", "--silent", `${name}@${version}`])).trim();
    files.unshift({ name, version, file });
  }
  const packages = await Promise.all(files.map(async (one) => ({ ...one, integrity: await integrityOf(join(folder, one.file)) })));
  await writeFile(join(folder, LIST), `${JSON.stringify(packages, undefined, 2)}\n`);
  return { folder, packages };
}

/** Sum up a tarball as npm does. */
export async function integrityOf(path: string): Promise<string> {
  return `sha512-${createHash("sha512")
    .update(await readFile(path))
    .digest("base64")}`;
}

/** Read the list of a build that was packed earlier. @throws {Error} when there is none. */
export async function readBuild(folder: string): Promise<Build> {
  const text = await readFile(join(folder, LIST), "utf8").catch((cause: unknown) => {
    throw new Error(`${folder} has no ${LIST}: pack a build into it first`, { cause });
  });
  return { folder, packages: JSON.parse(text) as readonly Packed[] };
}
