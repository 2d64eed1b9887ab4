import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runCommand } from "@turnout/house/command-line";
import { makeSite } from "./site.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Make the site in a folder; false when a link is dead. */
async function make(out: string): Promise<boolean> {
  await mkdir(out, { recursive: true });
  const { files, complaints } = await makeSite(ROOT);
  await rm(join(out, "index.html"), { force: true });
  for (const [path, content] of files) {
    await mkdir(dirname(join(out, path)), { recursive: true });
    await writeFile(join(out, path), content);
  }
  process.stdout.write(`${files.size} files in ${out}\n`);
  for (const complaint of complaints) process.stderr.write(`dead link: ${complaint}\n`);
  return complaints.length === 0;
}

await runCommand({
  name: "site",
  usage: "npm run site -- [FOLDER]\n  Make the site of the documentation (default: in site/out). Dead links fail it.",
  read: (args) => {
    const [folder, ...more] = parseArgs({ args: [...args], allowPositionals: true, options: {} }).positionals;
    if (more.length > 0) throw new RangeError("say one folder, or none");
    return folder === undefined ? join(ROOT, "site/out") : resolve(folder);
  },
  execute: make,
});
