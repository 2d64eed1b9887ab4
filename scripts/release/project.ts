import { mkdir, mkdtemp, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isAllowed } from "./licences.ts";
import { runIsolated, type NpmSettings } from "./npm.ts";
import { entryPointsOf, type Manifest } from "./packages.ts";

export { runIsolated } from "./npm.ts";

/** A project that holds nothing but what was installed into it. */
export interface Project {
  readonly folder: string;
  readonly npm: NpmSettings;
}

interface Installed {
  readonly name: string;
  readonly version: string;
  readonly integrity: string | undefined;
  readonly licence: string;
}

/** Make an empty project and install packages into it, as a user would. */
export async function install(parent: string, npm: NpmSettings, what: readonly string[]): Promise<Project> {
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, "project-"));
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  await runIsolated(npm, folder, ["npm", "install", "--silent", "--no-audit", "--no-fund", ...what]);
  return { folder, npm };
}

/** All that came with an install. */
export async function installed({ folder }: Project): Promise<readonly Installed[]> {
  const lock = JSON.parse(await readFile(join(folder, "node_modules", ".package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity?: string }>>;
  };
  return Promise.all(
    Object.entries(lock.packages).map(async ([path, { version, integrity }]) => {
      const manifest = JSON.parse(await readFile(join(folder, path, "package.json"), "utf8")) as { readonly license?: unknown };
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      return { name, version, integrity, licence: typeof manifest.license === "string" ? manifest.license : "none stated" };
    }),
  );
}

/** The dependencies whose licence we may not build on. Pure. */
export function licenceProblems(all: readonly Installed[]): readonly string[] {
  return all.filter(({ licence }) => !isAllowed(licence)).map(({ name, version, licence }) => `${name}@${version} has licence ${licence}`);
}

/** All files below node_modules: how many, and their bytes together. */
export async function installedSize({ folder }: Project): Promise<{ readonly files: number; readonly bytes: number }> {
  const entries = await readdir(join(folder, "node_modules"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(file.parentPath, file.name))).size));
  return { files: files.length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

/** Import every entry point in one process; they are returned with what each exports. @throws {Error} when one can't be imported. */
export async function importEntryPoints(
  { folder, npm }: Project,
  entryPoints: readonly string[],
): Promise<readonly { entryPoint: string; names: number }[]> {
  const script = `const seen = [];
for (const entryPoint of ${JSON.stringify(entryPoints)}) seen.push({ entryPoint, names: Object.keys(await import(entryPoint)).length });
process.stdout.write(JSON.stringify(seen), () => process.exit());`;
  return JSON.parse(await runIsolated(npm, folder, [process.execPath, "--input-type=module", "-e", script])) as {
    entryPoint: string;
    names: number;
  }[];
}

/** Let the compiler read the types of every entry point, those of dependencies too. @throws {Error} with what it says. */
export async function checkTypes(root: string, { folder, npm }: Project, entryPoints: readonly string[]): Promise<void> {
  const lines = entryPoints.map(
    (entryPoint, index) =>
      `import * as entryPoint${index} from ${JSON.stringify(entryPoint)};\nexport const names${index}: object = entryPoint${index};\n`,
  );
  await writeFile(join(folder, "doors.ts"), lines.join(""));
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: "es2024",
    module: "nodenext",
    types: ["node"],
    // A consumer of a library for Node has Node's types.
    typeRoots: [join(root, "node_modules", "@types")],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["doors.ts"] }));
  await runIsolated(npm, folder, [join(root, "node_modules", ".bin", "tsc"), "-p", "."]);
}

/** Let each command of a package say its version. @throws {Error} for one that can't. */
export async function runCommands({ folder, npm }: Project, { bin = {}, version }: Manifest): Promise<void> {
  for (const name of Object.keys(bin)) {
    const said = await runIsolated(npm, folder, [join(folder, "node_modules", ".bin", name), "--version"]);
    if (said !== `${version}\n`) throw new Error(`${name} --version says ${said}`);
  }
}

/** The doors that can be opened without a package's optional peers, and the others. */
export function splitEntryPoints(manifest: Manifest): { readonly standalone: readonly string[]; readonly withPeers: readonly string[] } {
  const entryPoints = entryPointsOf(manifest);
  const hasPeers = Object.keys(manifest.peerDependencies ?? {}).length > 0;
  const isForTests = (entryPoint: string): boolean => /\/testing(?:\/|$)/.test(entryPoint);
  return {
    standalone: entryPoints.filter((entryPoint) => !hasPeers || !isForTests(entryPoint)),
    withPeers: hasPeers ? entryPoints.filter(isForTests) : [],
  };
}
