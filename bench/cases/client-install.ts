import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { install, installed, installedSize, runIsolated } from "@turnout/house/release";
import { inFolder } from "../folder.ts";
import { interleave, median } from "../statistics.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** What a consumer without Turnout starts from. */
const RIVAL = { name: "@kubernetes/client-node", version: "2.0.1" };

/** What lies in node_modules after an install. */
interface Install {
  readonly folder: string;
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
    const ours = await installInto(directory, "@turnout/client", await pack(directory));
    const rival = await installInto(directory, RIVAL.name, [`${RIVAL.name}@${RIVAL.version}`]);
    const kinds = [
      { cwd: directory, entryPoint: "", found: ours },
      ...OWN_ENTRY_POINTS.map((entryPoint) => ({ cwd: ours.folder, entryPoint, found: ours })),
      { cwd: rival.folder, entryPoint: rival.name, found: rival },
    ].map((kind) => ({ ...kind, imports: [] as Import[] }));
    for (const { cwd, entryPoint } of kinds) await importOnce(cwd, entryPoint);
    for (const { cwd, entryPoint, imports } of interleave(kinds.map((what) => ({ what, runs }))))
      imports.push(await importOnce(cwd, entryPoint));
    const [bare, ...entryPoints] = kinds;
    const bareBytes = median(bare?.imports.map(({ rssBytes }) => rssBytes) ?? []);
    const measured = entryPoints.map(({ entryPoint, found, imports }) => {
      const overBytes = imports.map(({ rssBytes }) => rssBytes - bareBytes);
      return [entryPoint, { ...found, importMs: imports.map(({ importMs }) => importMs), overBytes }] as const;
    });
    const [before, last] = measured.slice(-2).map(([, one]) => one);
    return { ...Object.fromEntries(measured), "last / one before": { before, last } };
  });
}

/** Make the tarballs a registry would hold; gives their paths. */
async function pack(directory: string): Promise<readonly string[]> {
  const packages = ["core", "client"].map((name) => join(ROOT, "packages", name));
  await runIsolated({}, directory, ["npm", "pack", "--silent", "--pack-destination", directory, ...packages]);
  return (await readdir(directory)).filter((name) => name.endsWith(".tgz")).map((name) => join(directory, name));
}

async function installInto(parent: string, name: string, what: readonly string[]): Promise<Install> {
  const project = await install(parent, {}, what);
  const all = await installed(project);
  const version = all.find((one) => one.name === name)?.version ?? "unknown";
  return { folder: project.folder, name, version, packages: all.length, ...(await installedSize(project)) };
}

/** Import a package in a process of its own; "" imports nothing. */
async function importOnce(cwd: string, name: string): Promise<Import> {
  const script = `const start = performance.now();
${name === "" ? "" : `await import(${JSON.stringify(name)});`}
const importMs = performance.now() - start;
process.stdout.write(JSON.stringify({ importMs, rssBytes: process.memoryUsage.rss() }), () => process.exit());`;
  return JSON.parse(await runIsolated({}, cwd, ["env", "-i", process.execPath, "--input-type=module", "--eval", script])) as Import;
}
