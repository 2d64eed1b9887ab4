import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { oneOf, runCommand } from "../command-line.ts";
import { buildImage } from "./build-image.ts";
import type { ImagePlace } from "./build-image.ts";
import { Debian } from "./debian.ts";
import { debianLockText } from "./debian-lock.ts";
import { PLATFORMS } from "./platforms.ts";
import type { Arch } from "./platforms.ts";
import { BASE, packagesOf, RECIPES } from "./recipes.ts";
import type { ImageName, Recipe } from "./recipes.ts";
import { registryFrom, tagFrom } from "./reference.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CACHE = join(ROOT, "out/cache/images");
const USAGE = `npm run image -- [options]
  Pack images from pinned packages, each as one archive with a bill of materials beside it. On Debian, with clang.
  --backend NAME    ${Object.keys(RECIPES).join(", ")}; may be said again (default: all of these)
  --arch MACHINES   ${Object.keys(PLATFORMS).join(", ")}, or both with a comma (default: this machine's)
  --out DIR         (default out/images)
  --registry NAME   what stands before the name of an image: a registry, and folders in it (default turnout.local)
  --tag TAG         (default dev)
  --update          pin Debian's newest packages, and pack nothing
`;

/** What was asked for. @throws {TypeError | RangeError} saying what is wrong with it. */
function asked(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      backend: { type: "string", multiple: true },
      arch: { type: "string", default: process.arch === "arm64" ? "arm64" : "amd64" },
      out: { type: "string", default: "out/images" },
      registry: { type: "string", default: "turnout.local" },
      tag: { type: "string", default: "dev" },
      update: { type: "boolean", default: false },
    },
  });
  const names = Object.keys(RECIPES) as ImageName[];
  const place: ImagePlace = { registry: registryFrom(values.registry), tag: tagFrom(values.tag), folder: resolve(values.out) };
  return {
    isUpdate: values.update,
    recipes: (values.backend ?? names).map((name) => RECIPES[oneOf("--backend", name, names)]),
    archs: values.arch.split(",").map((arch) => oneOf("--arch", arch, Object.keys(PLATFORMS) as Arch[])),
    place,
  };
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const megabytes = (bytes = 0): string => (bytes / 1e6).toFixed(1);

function update(): void {
  const names = packagesOf([BASE, ...Object.values(RECIPES).flatMap(({ tools }) => tools)]);
  const pins = new Debian(CACHE).newest(names);
  writeFileSync(join(ROOT, "scripts/images/debian.lock"), debianLockText(pins));
  say(`scripts/images/debian.lock: ${pins.length} packages`);
}

function build(recipe: Recipe, archs: readonly Arch[], place: ImagePlace): void {
  const { reference, path, digest, storedBytes, filesBytes } = buildImage(recipe, archs, place, { root: ROOT, cache: CACHE });
  for (const arch of archs) say(`${reference} ${arch}: ${megabytes(storedBytes[arch])} MB, unpacked ${megabytes(filesBytes[arch])} MB`);
  say(`${reference} ${digest}\n${path}`);
}

await runCommand({
  name: "image",
  usage: USAGE,
  read: asked,
  execute: ({ isUpdate, recipes, archs, place }) => {
    mkdirSync(CACHE, { recursive: true });
    if (isUpdate) update();
    else for (const recipe of recipes) build(recipe, archs, place);
  },
});
