import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runIsolated, type NpmSettings } from "./npm.ts";
import { inPublishOrder, publicPackages, type Manifest } from "./packages.ts";

/** A packed package: the file, and what says that it is this one and no other. */
export interface Packed {
  readonly name: string;
  readonly version: string;
  /** Name of the tarball, beside the list. */
  readonly file: string;
  /** As npm and every lockfile write it: `sha512-…`. */
  readonly integrity: string;
  readonly shasum: string;
}

/** An exact build: what was tested is what is published, and what goes from channel to channel. */
export interface Build {
  readonly folder: string;
  /** In the order in which they can be published. */
  readonly packages: readonly Packed[];
}

const LIST = "build.json";

/**
 * Pack every public package into a folder, and write the list of them beside.
 *
 * @param isPublished - Whether a version is in the registry: then its tarball is fetched from there instead of being packed again.
 */
export async function pack(
  npm: NpmSettings,
  root: string,
  folder: string,
  isPublished: (one: Manifest) => Promise<boolean>,
): Promise<Build> {
  const packages: Packed[] = [];
  for (const one of inPublishOrder(await publicPackages(root))) {
    const what = (await isPublished(one)) ? `${one.name}@${one.version}` : `./packages/${one.folder}`;
    const text = await runIsolated(npm, root, ["npm", "pack", "--json", "--pack-destination", folder, what]);
    // npm 11 gives a list, npm 12 an object with an entry per name. A prepack script may print before the list.
    const answer = JSON.parse(text.slice(text.search(/^[[{]/m))) as PackAnswer;
    for (const { name, version, filename, integrity, shasum } of Object.values(answer)) {
      packages.push({ name, version, file: filename, integrity, shasum });
    }
  }
  await writeFile(join(folder, LIST), `${JSON.stringify(packages, undefined, 2)}\n`);
  return { folder, packages };
}

interface PackedByNpm extends Packed {
  readonly filename: string;
}
type PackAnswer = Readonly<Record<string, PackedByNpm>>;

/** Read the list of a build that was packed earlier. @throws {Error} when there is none. */
export async function readBuild(folder: string): Promise<Build> {
  const text = await readFile(join(folder, LIST), "utf8").catch((cause: unknown) => {
    throw new Error(`${folder} has no ${LIST}: pack a build into it first`, { cause });
  });
  return { folder, packages: JSON.parse(text) as readonly Packed[] };
}
