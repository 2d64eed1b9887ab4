import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { runCommand } from "../command-line.ts";
import { pack, readBuild } from "./build.ts";
import { promote, publish } from "./channels.ts";
import { dryRun } from "./dry-run.ts";
import { tableText } from "./findings.ts";
import { readCommand, USAGE } from "./options.ts";
import type { ReleaseCommand } from "./options.ts";
import { npmSettingsOf } from "./npm.ts";
import { raiseVersions } from "./raise-versions.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NPM = npmSettingsOf(process.env);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function execute(command: ReleaseCommand): Promise<boolean> {
  switch (command.action) {
    case "dry-run":
      return await runDryRun(command.build);
    case "version":
      say(`@turnout/cli and the chart are ${await raiseVersions(ROOT, command.snapshot)}`);
      return true;
    case "pack": {
      await mkdir(command.folder, { recursive: true });
      const { packages } = await pack(NPM, ROOT, resolve(command.folder));
      for (const { name, version, integrity } of packages) say(`${name}@${version} ${integrity}`);
      return true;
    }
    case "publish":
      for (const line of await publish(NPM, await readBuild(resolve(command.folder)), command.to, command)) say(line);
      return true;
    case "promote":
      for (const line of await promote(NPM, await readBuild(resolve(command.folder)), command.from, command.to, command)) say(line);
      return true;
  }
}

async function runDryRun(folder: string | undefined): Promise<boolean> {
  const checks = await dryRun({ root: ROOT, say, build: folder === undefined ? undefined : await readBuild(resolve(folder)) });
  say(`\n${tableText(checks)}`);
  const failed = checks.filter(({ problems }) => problems.length > 0);
  say(failed.length === 0 ? `release: ${checks.length} checks, all well` : `release: ${failed.length} of ${checks.length} checks FAILED`);
  return failed.length === 0;
}

await runCommand({ name: "release", usage: USAGE, read: readCommand, execute });
