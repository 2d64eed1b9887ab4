import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { blocksOf } from "./doc-session.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);
/** Upper bound for a machine that is busy with other things, too: it takes 2 s. */
const TIMEOUT_MS = 60_000;

/** What the page's reader writes and the page leaves out. */
const LEFT_TO_THE_READER = `
const textOf = tableText;
const reload = async (_signal: AbortSignal): Promise<void> => {};
`;
/** Applies twice with the daemon's programs, and prints what the file then says. */
const TRIAL = `
import table from "./index.ts";
import { createFakeHost } from "./testing.ts";

const { world } = createFakeHost();
const { exec } = world;
const done = { code: 0, stdout: "", stderr: "" };
const run: typeof exec.run = (program, args, options) => (program === "haproxy" ? Promise.resolve(done) : exec.run(program, args, options));
const { signal } = new AbortController();
const directory = "/run/turnout-table";
const dataplane = await table.open({ directory }, { ...world, exec: { run, open: exec.open } }, signal);
const backend = dataplane.family("IPv4");
await backend.observe(signal);
for (const key of ["TCP 10.96.0.1:80", "TCP 10.96.0.2:80"]) {
  const after = { kind: "route", key, value: true };
  await backend.apply(backend.plan({ put: [{ after }], remove: [], lingering: [], nowMs: 0 }), signal);
}
console.log((await exec.run("cat", [directory + "/IPv4.json"])).stdout);
`;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnout-page-"));
  await cp(join(ROOT, "examples/custom-backend"), directory, { recursive: true, filter: (path) => !path.includes("node_modules") });
  await symlink(join(ROOT, "node_modules"), join(directory, "node_modules"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it(
  "the TypeScript of docs/write-a-backend.md compiles in the example, and its apply keeps what was there",
  async () => {
    const blocks = blocksOf(await readFile(join(ROOT, "docs/write-a-backend.md"), "utf8"));
    const path = (name: string): string => join(directory, "src", name);
    let source = await readFile(path("index.ts"), "utf8");
    for (const [index, block] of blocks.entries()) {
      if (block.startsWith("import ")) await writeFile(path(`block-${index}.ts`), block);
      else source = withMember(source, block);
    }
    await writeFile(path("index.ts"), source + LEFT_TO_THE_READER);
    await writeFile(path("trial.ts"), TRIAL);
    const compilerOptions = { rootDir: "/", noEmit: true, skipLibCheck: true, customConditions: ["@turnout/source"] };
    await writeFile(join(directory, "tsconfig.page.json"), JSON.stringify({ extends: "./tsconfig.json", compilerOptions }));
    const { stdout: complaints } = await run(join(ROOT, "node_modules/.bin/tsc"), ["-p", "tsconfig.page.json"], { cwd: directory }).catch(
      (error: unknown) => error as { stdout: string },
    );
    expect(complaints).toBe("");
    const { stdout } = await run(process.execPath, ["--conditions=@turnout/source", path("trial.ts")], { cwd: directory });
    expect(Object.keys(JSON.parse(stdout) as object)).toEqual(["route TCP 10.96.0.1:80", "route TCP 10.96.0.2:80"]);
    expect(blocks.length).toBeGreaterThan(1);
  },
  TIMEOUT_MS,
);

/** The example with a member of its backend as the page has it. */
function withMember(source: string, block: string): string {
  const [, name = ""] = /^async (\w+)\(/.exec(block) ?? [];
  const member = new RegExp(String.raw`^    async ${name}\([^]*?^    \},\n`, "m");
  expect(source, `the example's ${name}`).toMatch(member);
  return source.replace(member, () => block.replace(/^(?=.)/gm, "    "));
}
