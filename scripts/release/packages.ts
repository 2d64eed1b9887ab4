import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** What a release reads of a package.json. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly private?: boolean;
  readonly engines?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** A package that is published, with its folder below `packages`. */
export interface PublicPackage extends Manifest {
  readonly folder: string;
}

/** Read the manifests of all packages that are published. */
export async function publicPackages(root: string): Promise<readonly PublicPackage[]> {
  const folders = await readdir(join(root, "packages"));
  const all = await Promise.all(
    folders.map(async (folder) => ({
      folder,
      ...(JSON.parse(await readFile(join(root, "packages", folder, "package.json"), "utf8")) as Manifest),
    })),
  );
  return all.filter((one) => one.private !== true);
}

/** What can be imported of a package, e.g. `@turnout/core/testing`. */
export function entryPointsOf({ name, exports = {} }: Manifest): readonly string[] {
  return Object.keys(exports).map((entryPoint) => join(name, entryPoint));
}
