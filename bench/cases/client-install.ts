import { execFile } from "node:child_process";
import { mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { inFolder } from "../folder.ts";
import { interleave, median } from "../statistics.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const INSTALL_TIMEOUT_MS = 300_000;
/** What a consumer without Turnout starts from. */
const RIVAL = { name: "@kubernetes/client-node", version: "2.0.1" };
const run = promisify(execFile);

/** What lies in node_modules after an install. */
interface Install {
  readonly name: string;
  readonly version: string;
  readonly packages: number;
  readonly files: number;
  /** Of all files together. */
  readonly bytes: number;
}

/** One process that imports a door of the package and says what that cost. */
interface Import {
  readonly importMs: number;
  readonly rssBytes: number;
}

/** For who only follows the node-state API, and for a backend's process. */
const OWN_ENTRY_POINTS = ["@turnout/client", "@turnout/client/daemon"];

/** Install `@turnout/client` as a third party does for a backend of its own, and the usual client of the API server, and import their entry points. */
export async function measureClientInstall({ imports: runs }: { readonly imports: number }): Promise<Readonly<Record<string, unknown>>> {
  return await inFolder(async (directory) => {
    const ours = await installInto(join(directory, "ours"), "@turnout/client", await pack(directory));
    const rival = await installInto(join(directory, "rival"), RIVAL.name, [`${RIVAL.name}@${RIVAL.version}`]);
    const kinds = [
      { cwd: directory, entryPoint: "", install: ours },
      ...OWN_ENTRY_POINTS.map((entryPoint) => ({ cwd: join(directory, "ours"), entryPoint, install: ours })),
      { cwd: join(directory, "rival"), entryPoint: rival.name, install: rival },
    ].map((kind) => ({ ...kind, imports: [] as Import[] }));
    for (const { cwd, entryPoint } of kinds) await importOnce(cwd, entryPoint);
    for (const { cwd, entryPoint, imports } of interleave(kinds.map((what) => ({ what, runs }))))
      imports.push(await importOnce(cwd, entryPoint));
    const [bare, ...entryPoints] = kinds;
    const bareBytes = median(bare?.imports.map(({ rssBytes }) => rssBytes) ?? []);
    const measured = entryPoints.map(({ entryPoint, install, imports }) => {
      const overBytes = imports.map(({ rssBytes }) => rssBytes - bareBytes);
      return [entryPoint, { ...install, importMs: imports.map(({ importMs }) => importMs), overBytes }] as const;
    });
    const [before, last] = measured.slice(-2).map(([, one]) => one);
    return { ...Object.fromEntries(measured), "last / one before": { before, last } };
  });
}

/** Make the tarballs a registry would hold; gives their paths. */
async function pack(directory: string): Promise<readonly string[]> {
  const packages = ["core", "client"].map((name) => join(ROOT, "packages", name));
  await npm(directory, ["pack", "--silent", "--pack-destination", directory, ...packages]);
  return (await readdir(directory)).filter((name) => name.endsWith(".tgz")).map((name) => join(directory, name));
}

async function installInto(project: string, name: string, what: readonly string[]): Promise<Install> {
  await mkdir(project);
  await writeFile(join(project, "package.json"), JSON.stringify({ name: "empty", private: true }));
  await npm(project, ["install", "--silent", "--no-audit", "--no-fund", ...what]);
  const modules = join(project, "node_modules");
  const lock = JSON.parse(await readFile(join(modules, ".package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly version: string }>>;
  };
  const entries = await readdir(modules, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(file.parentPath, file.name))).size));
  return {
    name,
    version: lock.packages[`node_modules/${name}`]?.version ?? "unknown",
    packages: Object.keys(lock.packages).length,
    files: files.length,
    bytes: sizes.reduce((sum, size) => sum + size, 0),
  };
}

/** Run npm as somebody would in a project of their own: `npm run bench` tells its children otherwise. @throws {Error} with npm's words. */
async function npm(cwd: string, args: readonly string[]): Promise<void> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith("npm_")));
  await run("npm", args, { cwd, env, timeout: INSTALL_TIMEOUT_MS });
}

/** Import a package in a process of its own; "" imports nothing. */
async function importOnce(cwd: string, name: string): Promise<Import> {
  const script = `const start = performance.now();
${name === "" ? "" : `await import(${JSON.stringify(name)});`}
const importMs = performance.now() - start;
process.stdout.write(JSON.stringify({ importMs, rssBytes: process.memoryUsage.rss() }), () => process.exit());`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], { cwd, env: { PATH: process.env["PATH"] } });
  return JSON.parse(stdout) as Import;
}
