import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPackedProject, publicPackages, type PackedProject } from "./packed-project.ts";

const SHOP = `apiVersion: v1
kind: Service
metadata: { name: cart }
spec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] }
`;

describe("the packages, packed and installed into an empty project", () => {
  let project: PackedProject;
  let packages: Awaited<ReturnType<typeof publicPackages>>;
  beforeAll(async () => {
    packages = await publicPackages();
    project = await createPackedProject();
  }, 240_000);
  afterAll(() => project.remove());

  it("hold what they need and nothing of the tests", async () => {
    const problems: string[] = [];
    for (const { name } of packages) {
      const files = await readdir(join(project.directory, "node_modules", name), { recursive: true });
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
    const { stdout } = await project.run(process.execPath, ["--input-type=module", "-e", script]);
    expect(stdout.trim().split("\n")).toEqual(doors.map((door) => `${door} true`));
  });

  it("give a turnout command that works", async () => {
    await writeFile(join(project.directory, "shop.yaml"), SHOP);
    const turnout = join(project.directory, "node_modules", ".bin", "turnout");
    const { stdout } = await project.run(turnout, ["print", "--source", "file:shop.yaml", "-o", "json"]);
    expect(stdout).toContain("default/cart:/TCP");
  });
});
