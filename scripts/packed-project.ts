import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What `npm test` tells its children left out: a packed project is configured by nobody. */
export const ENV: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith("npm_")),
);

const isBuilt = basename(fileURLToPath(new URL(".", import.meta.url))) === "dist";

/** The repository. */
export const ROOT: string = fileURLToPath(new URL(isBuilt ? "../.." : "..", import.meta.url));

/** A package that is published. */
export interface PublicPackage {
  /** Its folder below `packages/`. */
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, unknown>>;
}

/** Read the package.json of every package that is published. */
export async function publicPackages(): Promise<readonly PublicPackage[]> {
  const folders = await readdir(join(ROOT, "packages"));
  const manifests = await Promise.all(
    folders.map(async (folder) => ({
      folder,
      ...(JSON.parse(await readFile(join(ROOT, "packages", folder, "package.json"), "utf8")) as Omit<PublicPackage, "folder">),
    })),
  );
  return manifests.filter((manifest) => manifest.private !== true);
}

/** An empty directory that packages were installed into from their tarballs, as a user would. */
export interface PackedProject {
  readonly directory: string;
  /** Run a program there. @throws when it exits with anything but 0. */
  run(file: string, args: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }>;
  remove(): Promise<void>;
}

/**
 * Pack the published packages and install them into an empty project.
 * @param prepare puts files there before anything is installed; without a package.json one is made
 */
export async function createPackedProject(prepare?: (directory: string) => Promise<void>): Promise<PackedProject> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-packed-"));
  const runThere = (file: string, args: readonly string[]): Promise<{ stdout: string; stderr: string }> =>
    run(file, args, { cwd: directory, env: ENV, maxBuffer: 2 ** 28 });
  try {
    await writeFile(join(directory, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
    await prepare?.(directory);
    const folders = (await publicPackages()).map(({ folder }) => `./packages/${folder}`);
    await run("npm", ["pack", "--silent", "--pack-destination", directory, ...folders], { cwd: ROOT, env: ENV });
    const tarballs = (await readdir(directory)).filter((name) => name.endsWith(".tgz")).map((name) => `./${name}`);
    await runThere("npm", ["install", "--silent", "--no-audit", "--no-fund", ...tarballs]);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  return { directory, run: runThere, remove: () => rm(directory, { recursive: true, force: true }) };
}
