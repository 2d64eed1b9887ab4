import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
/** Without what `npm test` tells its children: the empty project is configured by nobody. */
const ENV = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith("npm_")));
const ROOT = fileURLToPath(new URL("..", import.meta.url));

const SHOP = `apiVersion: v1
kind: Service
metadata: { name: cart }
spec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] }
`;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly bin?: Readonly<Record<string, string>>;
}

async function publicPackages(): Promise<readonly (Manifest & { readonly folder: string })[]> {
  const folders = await readdir(join(ROOT, "packages"));
  const manifests = await Promise.all(
    folders.map(async (folder) => ({
      folder,
      ...(JSON.parse(await readFile(join(ROOT, "packages", folder, "package.json"), "utf8")) as Manifest),
    })),
  );
  return manifests.filter((manifest) => manifest.private !== true);
}

it("every program is a file of the repository: npm links none that a build has still to make", async () => {
  const packages = await publicPackages();
  const programs = packages.flatMap(({ folder, bin = {} }) => Object.values(bin).map((file) => `packages/${folder}/${file}`));
  const { stdout } = await run("git", ["ls-files", "--stage", ...programs], { cwd: ROOT });
  expect(stdout.split("\n").filter((line) => line.startsWith("100755 "))).toHaveLength(programs.length);
  expect(programs.length).toBeGreaterThan(3);
});

describe("the packages, packed and installed into an empty project", () => {
  let project: string;
  let packages: Awaited<ReturnType<typeof publicPackages>>;
  beforeAll(async () => {
    packages = await publicPackages();
    project = await mkdtemp(join(tmpdir(), "turnout-packages-"));
    await run("npm", ["pack", "--silent", "--pack-destination", project, ...packages.map(({ folder }) => `./packages/${folder}`)], {
      cwd: ROOT,
      env: ENV,
    });
    await writeFile(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
    const tarballs = (await readdir(project)).filter((name) => name.endsWith(".tgz")).map((name) => `./${name}`);
    await run("npm", ["install", "--silent", "--no-audit", "--no-fund", ...tarballs], { cwd: project, env: ENV });
  }, 240_000);
  afterAll(() => rm(project, { recursive: true, force: true }));

  it("hold what they need and nothing of the tests", async () => {
    const problems: string[] = [];
    for (const { name } of packages) {
      const files = await readdir(join(project, "node_modules", name), { recursive: true });
      for (const file of ["README.md", "CHANGELOG.md", join("dist", "index.js"), join("dist", "index.d.ts")]) {
        if (!files.includes(file)) problems.push(`${name} lacks ${file}`);
      }
      for (const file of files) if (/\.test\./.test(file)) problems.push(`${name} ships ${file}`);
    }
    expect(problems).toEqual([]);
  });

  it("can be imported through every door", async () => {
    const doors = packages.flatMap(({ name, exports = {} }) => Object.keys(exports).map((door) => join(name, door)));
    expect(doors.length).toBeGreaterThanOrEqual(packages.length);
    const script = `for (const door of ${JSON.stringify(doors)}) console.log(door, Object.keys(await import(door)).length > 0);`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: project });
    expect(stdout.trim().split("\n")).toEqual(doors.map((door) => `${door} true`));
  });

  it("give a turnout command that works", async () => {
    await writeFile(join(project, "shop.yaml"), SHOP);
    const { stdout } = await run(join(project, "node_modules", ".bin", "turnout"), ["print", "--source", "file:shop.yaml", "-o", "json"], {
      cwd: project,
    });
    expect(stdout).toContain("default/cart:/TCP");
  });
});
