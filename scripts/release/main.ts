import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { pack, readBuild } from "./build.ts";
import { integrityOf, promote, publish } from "./channels.ts";
import { dryRun } from "./dry-run.ts";
import { tableText } from "./findings.ts";
import type { Manifest } from "./packages.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const USAGE = "say what: dry-run [--build FOLDER] | pack FOLDER | publish FOLDER CHANNEL | promote FOLDER FROM TO";
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const { values, positionals } = parseArgs({ allowPositionals: true, options: { build: { type: "string" } } });
const [what, folder = "", from = "", to = ""] = positionals;

if (what === "dry-run") {
  const checks = await dryRun({ root: ROOT, say, build: values.build === undefined ? undefined : await readBuild(resolve(values.build)) });
  say(`\n${tableText(checks)}`);
  const failed = checks.filter(({ problems }) => problems.length > 0);
  say(failed.length === 0 ? `release: ${checks.length} checks, all well` : `release: ${failed.length} of ${checks.length} checks FAILED`);
  process.exitCode = failed.length === 0 ? 0 : 1;
} else if (what === "pack" && folder !== "") {
  await mkdir(folder, { recursive: true });
  const isPublished = async (one: Manifest): Promise<boolean> => (await integrityOf({}, ROOT, one)) !== undefined;
  for (const { name, version, integrity } of (await pack(ROOT, resolve(folder), isPublished)).packages)
    say(`${name}@${version} ${integrity}`);
} else if (what === "publish" && from !== "") {
  for (const line of await publish({}, await readBuild(resolve(folder)), from)) say(line);
} else if (what === "promote" && to !== "") {
  for (const line of await promote({}, await readBuild(resolve(folder)), from, to)) say(line);
} else {
  throw new Error(USAGE);
}
