import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Manifest } from "./packages.ts";

/** What a package holds, as installed. */
export interface Contents {
  readonly manifest: Manifest;
  /** Paths of its files. */
  readonly files: readonly string[];
  /** Its texts, by path. */
  readonly texts: ReadonlyMap<string, string>;
  /** Those of its files that may be executed. */
  readonly programs: ReadonlySet<string>;
}

const TEXT = /\.(?:c?js|mjs|ts|map|json|md|sh|proto|html)$|^bin\/|LICENSE$/;

/** What packages hold beside what is compiled from TypeScript. */
const OBJECTS: Readonly<Record<string, readonly string[]>> = {
  "@turnout/backend-ebpf": ["dist/programs/sockets.bpf.o", "dist/programs/packets.bpf.o", "dist/testing/other-program.bpf.o"],
};

/** Read an installed package, without what lies in a node_modules of its own. */
export async function readContents(folder: string): Promise<Contents> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((file) => !file.startsWith("node_modules/"))
    .toSorted();
  const texts = new Map<string, string>();
  const programs = new Set<string>();
  for (const file of files) {
    if (TEXT.test(file)) texts.set(file, await readFile(join(folder, file), "utf8"));
    if (((await stat(join(folder, file))).mode & 0o111) !== 0) programs.add(file);
  }
  return { manifest: JSON.parse(texts.get("package.json") ?? "{}") as Manifest, files, texts, programs };
}

/**
 * Say what a package lacks, or should not hold: tests, paths of the machine that built it, another licence than the repository's.
 * Pure.
 */
export function contentProblems(
  { manifest, files, texts, programs }: Contents,
  licence: string,
  machinePaths: readonly string[],
): string[] {
  const { name, bin = {}, exports = {} } = manifest;
  const wanted = ["README.md", "CHANGELOG.md", "LICENSE", ...targetsOf(exports), ...(OBJECTS[name] ?? [])];
  const problems = wanted.filter((file) => !files.includes(file)).map((file) => `lacks ${file}`);
  for (const file of files) if (/\.test\.|(?:^|\/)test-support\/|\.tsbuildinfo$|(?:^|\/)\.env/.test(file)) problems.push(`ships ${file}`);
  for (const [file, text] of texts) {
    for (const path of machinePaths) if (text.includes(path)) problems.push(`${file} names ${path}`);
  }
  for (const file of Object.values(bin)) if (!programs.has(file)) problems.push(`${file} can't be executed`);
  if (manifest.license !== "Apache-2.0") problems.push(`has licence ${manifest.license ?? "none"}`);
  if (texts.has("LICENSE") && texts.get("LICENSE") !== licence) problems.push("has another LICENSE than the repository");
  return problems;
}

/** Every file that a door leads to, under each condition. */
function targetsOf(exports: unknown): readonly string[] {
  if (typeof exports === "string") return [exports.replace(/^\.\//, "")];
  return Object.values(exports as Readonly<Record<string, unknown>>).flatMap(targetsOf);
}
