import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { makeSite } from "./site.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const out = resolve(process.argv[2] ?? join(root, "site/out"));

const { files, complaints } = await makeSite(root);
await rm(join(out, "index.html"), { force: true });
for (const [path, content] of files) {
  await mkdir(dirname(join(out, path)), { recursive: true });
  await writeFile(join(out, path), content);
}
process.stdout.write(`${files.size} files in ${out}\n`);
for (const complaint of complaints) process.stderr.write(`dead link: ${complaint}\n`);
process.exitCode = complaints.length === 0 ? 0 : 1;
