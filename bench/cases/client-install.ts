import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { BenchCase, CaseContext, CaseResult } from "../case.ts";
import { ratioText, runsText, timeText } from "../number-text.ts";
import { interleave, median } from "../statistics.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Of each kind, after one that is not counted: it brings the files into the page cache. */
const RUNS = 15;
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

/** What was installed, and what one of its doors costs who imports it. */
interface EntryPoint extends Install {
  /** As it is imported, e.g. `@turnout/client/daemon`. */
  readonly entryPoint: string;
  readonly imports: readonly Import[];
}

/** Samples of each door, and of a process that imports nothing, taken in turn with them; the rival is the last one. */
interface ClientInstallData {
  readonly bare: readonly Import[];
  readonly entryPoints: readonly EntryPoint[];
}

/** For who only follows the node-state API, and for a backend's process. */
const OWN_ENTRY_POINTS = ["@turnout/client", "@turnout/client/daemon"];

/** What a third party installs and loads for a backend of its own, beside the usual client of the API server. */
export const clientInstall: BenchCase = {
  name: "client-install",
  about: "`@turnout/client` packed and installed into an empty project: size, packages, import time and memory",
  needs: ["built"],
  async run(context): Promise<CaseResult> {
    const data = await measure(context);
    return {
      title: "What a third party installs",
      about:
        "Each package with its dependencies, installed by npm into an empty project: `@turnout/client` and `@turnout/core` from their tarballs, the other from the registry. " +
        `*Size* is the sum of the files' sizes. *Import* is \`await import(…)\` in a new process each time; *memory* is its resident memory afterwards, less that of a process that imports nothing ` +
        `(${megabytes(median(data.bare.map(({ rssBytes }) => rssBytes)))}). Warm page cache, no compile cache; the four kinds of processes take turns. ` +
        "`@turnout/client` is for programs that follow the node-state API, `@turnout/client/daemon` for processes that run a backend.",
      columns: ["import of", "packages", "files", "size", "import", "memory over bare Node"],
      rows: [...data.entryPoints.map((entryPoint) => rowOf(entryPoint, data.bare)), ratiosOf(data)],
      targets: [],
      data,
    };
  },
};

async function measure({ runs = RUNS, progress }: CaseContext): Promise<ClientInstallData> {
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  try {
    progress("packing and installing @turnout/client");
    const tarballs = await pack(directory);
    const ours = await installInto(join(directory, "ours"), "@turnout/client", tarballs);
    progress(`installing ${RIVAL.name}`);
    const rival = await installInto(join(directory, "rival"), RIVAL.name, [`${RIVAL.name}@${RIVAL.version}`]);
    progress("importing");
    const kinds = [
      { cwd: directory, entryPoint: "" },
      ...OWN_ENTRY_POINTS.map((entryPoint) => ({ cwd: join(directory, "ours"), entryPoint })),
      { cwd: join(directory, "rival"), entryPoint: rival.name },
    ].map((kind) => ({ ...kind, imports: [] as Import[] }));
    for (const { cwd, entryPoint } of kinds) await importOnce(cwd, entryPoint);
    for (const { cwd, entryPoint, imports } of interleave(kinds.map((what) => ({ what, runs }))))
      imports.push(await importOnce(cwd, entryPoint));
    const [bare, ...entryPoints] = kinds;
    return {
      bare: bare?.imports ?? [],
      entryPoints: entryPoints.map(({ entryPoint, imports }) => ({ ...(entryPoint === rival.name ? rival : ours), entryPoint, imports })),
    };
  } finally {
    await rm(directory, { recursive: true });
  }
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

function rowOf({ entryPoint, version, packages, files, bytes, imports }: EntryPoint, bare: readonly Import[]): string[] {
  const bareRss = median(bare.map(({ rssBytes }) => rssBytes));
  const importText = runsText(
    imports.map(({ importMs }) => importMs),
    timeText,
  );
  const memory = runsText(
    imports.map(({ rssBytes }) => rssBytes - bareRss),
    megabytes,
  );
  return [`${entryPoint} ${version}`, String(packages), String(files), megabytes(bytes), importText, memory];
}

/** How much more the rival is than what a backend's process imports. */
function ratiosOf({ bare, entryPoints }: ClientInstallData): string[] {
  const bareRss = median(bare.map(({ rssBytes }) => rssBytes));
  const ratio = (of: (entryPoint: EntryPoint) => number): string => {
    const [ours = Number.NaN, rival = Number.NaN] = entryPoints.slice(-2).map(of);
    return ratioText(rival / ours);
  };
  return [
    "last / one before",
    ratio(({ packages }) => packages),
    ratio(({ files }) => files),
    ratio(({ bytes }) => bytes),
    ratio(({ imports }) => median(imports.map(({ importMs }) => importMs))),
    ratio(({ imports }) => median(imports.map(({ rssBytes }) => rssBytes)) - bareRss),
  ];
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
