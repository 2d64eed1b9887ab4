import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { statusTable, withTable, type BackendStatus } from "./status-table.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const readme = join(root, "README.md");

// Exit code 1 is an answer: a backend does not conform, and the table says so.
const { status, stdout, stderr } = spawnSync(join(root, "packages/cli/bin/turnout"), ["conformance", "-o", "json"], {
  encoding: "utf8",
  maxBuffer: 2 ** 28,
});
if ((status !== 0 && status !== 1) || stdout === "") throw new Error(`turnout conformance ended with ${status}: ${stderr}`);

const before = readFileSync(readme, "utf8");
const now = withTable(before, statusTable(JSON.parse(stdout) as readonly BackendStatus[]));
if (process.argv.includes("--update")) writeFileSync(readme, now);
else if (now !== before) {
  process.stderr.write("README.md: its table of backends isn't what turnout conformance says; run: npm run status:update\n");
  process.exitCode = 1;
}
