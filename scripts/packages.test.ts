import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut, needs } from "./needs.ts";
import { contentProblems, readContents } from "./release/contents.ts";
import { entryPointsOf, publicPackages } from "./release/packages.ts";
import { importEntryPoints } from "./release/project.ts";
import { oldNodeFolder } from "./release/stories.ts";

const run = promisify(execFile);
/** Without what `npm test` tells its children: the empty project is configured by nobody. */
const ENV = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith("npm_")));
const ROOT = fileURLToPath(new URL("..", import.meta.url));

const SHOP = `apiVersion: v1
kind: Service
metadata: { name: cart }
spec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] }
`;

const isPositive = (value: number): boolean => value > 0;

const OLD_NODE = await oldNodeFolder();

it("every program is a file of the repository: npm links none that a build has still to make", async () => {
  const packages = await publicPackages(ROOT);
  const programs = packages.flatMap(({ folder, bin = {} }) => Object.values(bin).map((file) => `packages/${folder}/${file}`));
  const { stdout } = await run("git", ["ls-files", "--stage", ...programs], { cwd: ROOT });
  expect(stdout.split("\n").filter((line) => line.startsWith("100755 "))).toHaveLength(programs.length);
  expect(programs.length).toBeGreaterThan(3);
});

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

it("a Node of one's own is for the versions of Node that the programs can't run on, and for no other", async () => {
  const engines = new Map((await publicPackages(ROOT)).map(({ name, engines: { node } = {} }) => [name, node]));
  expect(engines.get("@turnout/node")).toBe("<22.19 || >=23 <24.11 || >=25 <26");
  engines.delete("@turnout/node");
  expect(new Set(engines.values())).toEqual(new Set(["^22.19 || ^24.11 || >=26"]));
});

describe("the packages, packed and installed into an empty project", needs("bpf"), () => {
  let project: string;
  let packages: Awaited<ReturnType<typeof publicPackages>>;
  beforeAll(async () => {
    packages = await publicPackages(ROOT);
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
    const licence = await readFile(join(ROOT, "LICENSE"), "utf8");
    const problems = packages.map(async ({ name }) => {
      const contents = await readContents(join(project, "node_modules", name));
      return contentProblems(contents, licence, [ROOT]).map((problem) => `${name} ${problem}`);
    });
    expect((await Promise.all(problems)).flat()).toEqual([]);
  });

  it("can be imported through every door", async () => {
    const entryPoints = packages.flatMap(entryPointsOf);
    expect(entryPoints.length).toBeGreaterThanOrEqual(packages.length);
    expect(await importEntryPoints({ folder: project, npm: {} }, entryPoints)).toEqual(
      entryPoints.map((entryPoint) => ({ entryPoint, names: expect.toSatisfy(isPositive) as number })),
    );
  });

  /** Every installed command says its version, with a PATH on which this folder is the first; which ones there are. */
  async function runAll(nodeFolder: string): Promise<readonly string[]> {
    const names = packages.flatMap(({ bin = {} }) => Object.keys(bin)).filter((name) => name.startsWith("turnout"));
    const path = [nodeFolder, "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter);
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
    expect((await runAll(folder)).length).toBeGreaterThan(3);
  });

  const hasOld = OLD_NODE === undefined ? leftOut("node<22.19", "none on PATH") : {};
  it("every command runs on a machine whose own Node is too old", hasOld, async () => {
    expect((await runAll(OLD_NODE ?? "")).length).toBeGreaterThan(3);
  });

  it("name the package for a login that none of them brings", async () => {
    const cluster = { server: "https://127.0.0.1:1" };
    const user = { "auth-provider": { name: "gcp", config: { "cmd-path": "gcloud" } } };
    const entries = {
      clusters: [{ name: "c", cluster }],
      users: [{ name: "u", user }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    };
    await writeFile(join(project, "kubeconfig"), JSON.stringify({ ...entries, "current-context": "x" }));
    const printed = run(join(project, "node_modules", ".bin", "turnout"), ["print", "--source", "kube", "--kubeconfig", "kubeconfig"], {
      cwd: project,
    });
    await expect(printed).rejects.toMatchObject({
      stderr: expect.stringMatching(
        /^turnout: \[tool_missing\] .* needs the package @kubernetes\/client-node, which is not installed: .*\n$/,
      ) as string,
    });
  });

  it("give a turnout command that works", async () => {
    await writeFile(join(project, "shop.yaml"), SHOP);
    const { stdout } = await run(join(project, "node_modules", ".bin", "turnout"), ["print", "--source", "file:shop.yaml", "-o", "json"], {
      cwd: project,
    });
    expect(stdout).toContain("default/cart:/TCP");
  });
});
