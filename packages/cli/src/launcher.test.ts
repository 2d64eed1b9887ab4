import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const PACKAGES = fileURLToPath(new URL("../../", import.meta.url));
/** Every command of every package: its name, and the file that is run. */
const COMMANDS: readonly (readonly [name: string, file: string])[] = readdirSync(PACKAGES).flatMap((folder) => {
  const { bin = {} } = JSON.parse(readFileSync(join(PACKAGES, folder, "package.json"), "utf8")) as {
    bin?: Readonly<Record<string, string>>;
  };
  return Object.entries(bin).map(([name, file]) => [name, join(PACKAGES, folder, file)] as const);
});
/** lab's helpers are started by what has found its Node already. */
const LAUNCHED = COMMANDS.filter(([name]) => name.startsWith("turnout"));
const SAY = 'process.stdout.write("ran " + process.argv.slice(2).join(" "))';

let directory: string;
let bin: string;

/** A PATH with the tools a launcher needs, and nothing else. */
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnout-launcher-"));
  bin = join(directory, "path");
  await mkdir(bin);
  for (const tool of ["sh", "readlink"]) await symlink(`/usr/bin/${tool}`, join(bin, tool));
});

afterEach(() => rm(directory, { recursive: true }));

/** An installed package with a main that says its arguments; resolves to the command. */
async function install(name: string, file: string): Promise<string> {
  const home = join(directory, "lib/node_modules/@turnout/it");
  const client = join(directory, "lib/node_modules/@turnout/client");
  for (const folder of [join(home, "bin"), join(home, "dist"), client]) await mkdir(folder, { recursive: true });
  await copyFile(join(PACKAGES, "client/launcher.sh"), join(client, "launcher.sh"));
  await copyFile(file, join(home, "bin", name));
  await chmod(join(home, "bin", name), 0o755);
  await writeFile(join(home, "package.json"), '{"type":"module"}');
  await writeFile(join(home, "dist/main.js"), SAY);
  return join(home, "bin", name);
}

interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function launch(path: string): Promise<Result> {
  return new Promise((resolve) => {
    execFile(path, ["print", "a b"], { env: { PATH: bin } }, (error, out, err) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, out, err });
    });
  });
}

async function fakeNode(version: string): Promise<void> {
  await writeFile(
    join(bin, "node"),
    `#!/bin/sh\n[ "$1" = --version ] && echo ${version} && exit\nwhile [ "\${1#--}" != "$1" ]; do shift; done\nshift\nprintf 'fake ran %s' "$*"`,
  );
  await chmod(join(bin, "node"), 0o755);
}

test("there are commands to look at", () => expect(LAUNCHED.length).toBeGreaterThan(3));

describe.each(LAUNCHED)("bin/%s", (name, file) => {
  let installed: string;
  beforeEach(async () => {
    installed = await install(name, file);
  });

  test.each(["v22.19.0", "v24.0.0", "v26.10.0"])("takes node %s from PATH", async (version) => {
    await fakeNode(version);
    expect(await launch(installed)).toEqual({ code: 0, out: "fake ran print a b", err: "" });
  });

  test.each(["v20.20.2", "v22.18.9", "v18.0.0"])("refuses node %s in one line", async (version) => {
    await fakeNode(version);
    const { code, out, err } = await launch(installed);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toBe(
      `${name}: [host_unsupported] node ${version} is too old: ${bin}/node: install Node.js 22.19 or newer, or run npm install again under this one\n`,
    );
  });

  test("says so when there is no node", async () => {
    expect(await launch(installed)).toEqual({
      code: 1,
      out: "",
      err: `${name}: [tool_missing] no node found: install Node.js 22.19 or newer\n`,
    });
  });

  test("prefers the pinned node above the package to the one on PATH", async () => {
    await fakeNode("v18.0.0");
    const pinned = join(directory, "lib/node_modules/.bin");
    await mkdir(pinned);
    await symlink(process.execPath, join(pinned, "node"));
    expect(await launch(installed)).toEqual({ code: 0, out: "ran print a b", err: "" });
  });

  test("is found through symlinks, relative ones too, from anywhere", async () => {
    await fakeNode("v24.0.0");
    await symlink(`../lib/node_modules/@turnout/it/bin/${name}`, join(bin, name));
    await symlink(join(bin, name), join(directory, "again"));
    expect((await launch(join(directory, "again"))).out).toBe("fake ran print a b");
  });
});
