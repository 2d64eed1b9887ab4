import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildImage } from "./build-image.ts";
import { Debian } from "./debian.ts";
import { debianLockText } from "./debian-lock.ts";
import { PLATFORMS } from "./platforms.ts";
import type { Arch } from "./platforms.ts";
import { BASE, packagesOf, RECIPES } from "./recipes.ts";
import type { Recipe } from "./recipes.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CACHE = join(ROOT, "out/cache/images");
const USAGE = `npm run image -- [--backend ${Object.keys(RECIPES).join("|")}] [--arch amd64|arm64|amd64,arm64] [--out DIR] [--registry NAME] [--tag TAG] | --update`;

const { values } = parseArgs({
  options: {
    backend: { type: "string", multiple: true, default: Object.keys(RECIPES) },
    arch: { type: "string", default: process.arch === "arm64" ? "arm64" : "amd64" },
    out: { type: "string", default: "out/images" },
    registry: { type: "string", default: "turnout.local" },
    tag: { type: "string", default: "dev" },
    update: { type: "boolean", default: false },
  },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const megabytes = (bytes = 0): string => (bytes / 1e6).toFixed(1);

/** Find what was asked for by name. @throws {Error} with the usage. */
function named<T>(all: Readonly<Record<string, T>>, name: string): T {
  const found = all[name];
  if (found === undefined) throw new Error(`${JSON.stringify(name)} is not known: ${USAGE}`);
  return found;
}

function update(): void {
  const names = packagesOf([BASE, ...Object.values(RECIPES).flatMap(({ tools }) => tools)]);
  const pins = new Debian(CACHE).newest(names);
  writeFileSync(join(ROOT, "scripts/images/debian.lock"), debianLockText(pins));
  say(`scripts/images/debian.lock: ${pins.length} packages`);
}

function build(recipe: Recipe, archs: readonly Arch[]): void {
  const place = { registry: values.registry, tag: values.tag, folder: resolve(values.out) };
  const { reference, path, digest, storedBytes, filesBytes } = buildImage(recipe, archs, place, { root: ROOT, cache: CACHE });
  for (const arch of archs) say(`${reference} ${arch}: ${megabytes(storedBytes[arch])} MB, unpacked ${megabytes(filesBytes[arch])} MB`);
  say(`${reference} ${digest}\n${path}`);
}

mkdirSync(CACHE, { recursive: true });
if (values.update) update();
else {
  const archs = values.arch.split(",").map((arch) => named(PLATFORMS, arch).arch);
  for (const name of values.backend) build(named<Recipe>(RECIPES, name), archs);
}
