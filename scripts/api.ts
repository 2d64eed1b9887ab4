import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { entryPointsOf, surfaceDifference, surfaceText } from "./api-surface.ts";
import { readPackages, readSources } from "./architecture/tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const isUpdate = process.argv.includes("--update");
const files = new Map(readSources(root).map((file) => [file.path, file]));
const complaints: string[] = [];

if (isUpdate) mkdirSync(join(root, "api"), { recursive: true });
for (const { dir, name } of readPackages(root).filter((one) => one.dir.startsWith("packages/"))) {
  const { exports = {} } = JSON.parse(readFileSync(join(root, dir, "package.json"), "utf8")) as { exports?: Record<string, unknown> };
  if (Object.keys(exports).length === 0) continue;
  const written = join("api", `${basename(dir)}.txt`);
  const now = surfaceText(entryPointsOf(dir, name, exports), files);
  if (isUpdate) {
    writeFileSync(join(root, written), now);
    continue;
  }
  const before = existsSync(join(root, written)) ? readFileSync(join(root, written), "utf8") : "";
  complaints.push(...surfaceDifference(before, now).map((change) => `${written}: ${change}`));
}

if (complaints.length > 0) {
  complaints.push("api: what is exported isn't what is written down; if that is meant, run: npm run api:update");
  process.stderr.write(`${complaints.join("\n")}\n`);
  process.exitCode = 1;
}
