import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareVersions, leftOut, needs } from "./needs.ts";

const run = promisify(execFile);
/** Without what `npm test` tells its children: the empty project is configured by nobody. */
const ENV = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith("npm_")));
const ROOT = fileURLToPath(new URL("..", import.meta.url));

const SHOP = `apiVersion: v1
kind: Service
metadata: { name: cart }
spec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] }
`;

/** The oldest Node that the packages run on. */
const OLDEST = "22.19";

/** Where on PATH there is a Node that is too old, if anywhere. */
async function oldNode(): Promise<string | undefined> {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    const file = join(directory, "node");
    const version = await run(file, ["--version"]).then(
      ({ stdout }) => stdout.trim().slice(1),
      () => OLDEST,
    );
    if (compareVersions(version, OLDEST) < 0) return file;
  }
  return undefined;
}
const OLD_NODE = await oldNode();

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

/** What packages hold beside what is compiled from TypeScript. */
const OBJECTS: Readonly<Record<string, readonly string[]>> = {
  "@turnout/backend-ebpf": ["dist/programs/sockets.bpf.o", "dist/programs/packets.bpf.o"],
};

it("a package with BPF programs is not packed without them", async () => {
  const copy = await mkdtemp(join(tmpdir(), "turnout-unpacked-"));
  try {
    const folder = join("packages", "backend-ebpf");
    await cp(join(ROOT, folder), join(copy, folder), { recursive: true, filter: (path) => !/\/(?:dist|node_modules)$/.test(path) });
    await cp(join(ROOT, "scripts", "build-bpf.sh"), join(copy, "scripts", "build-bpf.sh"));
    // A PATH without clang, but with all that packing calls.
    const bin = join(copy, "bin");
    await mkdir(bin);
    for (const tool of ["sh", "dirname", "find", "uname"]) await symlink(join("/usr/bin", tool), join(bin, tool));
    await symlink(process.execPath, join(bin, "node"));
    const { stdout: npm } = await run("sh", ["-c", "command -v npm"]);
    const packing = run(process.execPath, [await realpath(npm.trim()), "pack", `./${folder}`], { cwd: copy, env: { ...ENV, PATH: bin } });
    await expect(packing).rejects.toThrow("turnout: BPF programs are not built; run: apt-get install");
    expect((await readdir(copy)).filter((name) => name.endsWith(".tgz"))).toEqual([]);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
});

describe("the packages, packed and installed into an empty project", needs("bpf"), () => {
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
      for (const file of ["README.md", "CHANGELOG.md", join("dist", "index.js"), join("dist", "index.d.ts"), ...(OBJECTS[name] ?? [])]) {
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

  /** Every installed command says its version, with a PATH on which this Node is the first; which ones there are. */
  async function runAll(node: string): Promise<readonly string[]> {
    const names = packages.flatMap(({ bin = {} }) => Object.keys(bin)).filter((name) => name.startsWith("turnout"));
    const path = [dirname(node), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter);
    for (const name of names) {
      const { stdout } = await run(join(project, "node_modules", ".bin", name), ["--version"], { cwd: project, env: { PATH: path } });
      expect(`${name} ${stdout}`).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+\\n$`));
    }
    return names;
  }

  it("bring a Node of their own: every command runs where PATH has none that will do", async () => {
    const folder = join(project, "old");
    await mkdir(folder);
    await writeFile(
      join(folder, "node"),
      '#!/bin/sh\n[ "$1" = --version ] && echo v20.20.2 && exit\necho "an old node was started" >&2\nexit 1\n',
    );
    await chmod(join(folder, "node"), 0o755);
    expect((await runAll(join(folder, "node"))).length).toBeGreaterThan(3);
  });

  const hasOld = OLD_NODE === undefined ? leftOut("node<22.19", "none on PATH") : {};
  it("every command runs on a machine whose own Node is too old", hasOld, async () => {
    expect((await runAll(OLD_NODE ?? "")).length).toBeGreaterThan(3);
  });

  it("give a turnout command that works", async () => {
    await writeFile(join(project, "shop.yaml"), SHOP);
    const { stdout } = await run(join(project, "node_modules", ".bin", "turnout"), ["print", "--source", "file:shop.yaml", "-o", "json"], {
      cwd: project,
    });
    expect(stdout).toContain("default/cart:/TCP");
  });
});
