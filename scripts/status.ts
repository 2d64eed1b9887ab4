import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ruleStatus } from "./rule-status.ts";
import { statusTable, withTable, type BackendStatus } from "./status-table.ts";

// `npm run status:update`. The conformance test of each backend compares its report with what is written here (expect-written.ts).

const root = fileURLToPath(new URL("..", import.meta.url));

// Exit code 1 is an answer: a backend does not conform, and the table says so.
const { status, stdout, stderr } = spawnSync(join(root, "packages/cli/bin/turnout"), ["conformance", "-o", "json"], {
  encoding: "utf8",
  maxBuffer: 2 ** 28,
});
if ((status !== 0 && status !== 1) || stdout === "") throw new Error(`turnout conformance ended with ${status}: ${stderr}`);
const backends = JSON.parse(stdout) as readonly (BackendStatus & { readonly leftOut?: string })[];
for (const { backend, leftOut } of backends) if (leftOut !== undefined) throw new Error(`${backend} was left out: ${leftOut}`);

/** What is written where, made of what is there. */
const WRITTEN: Readonly<Record<string, (before: string) => string>> = {
  "README.md": (before) => withTable(before, statusTable(backends)),
  "docs/rule-status.json": () => `${JSON.stringify(ruleStatus(backends), undefined, 2)}\n`,
};

for (const [name, make] of Object.entries(WRITTEN)) {
  const path = join(root, name);
  writeFileSync(path, make(readFileSync(path, "utf8")));
}
