import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { PackageFacts } from "./check-imports.ts";
import type { Page } from "./check-pages.ts";
import { parseSource } from "./source-file.ts";
import type { SourceFile } from "./source-file.ts";

const SOURCES = ["packages/*/src/**/*.ts", "e2e/**/*.ts", "scripts/**/*.ts", "bench/**/*.ts", "examples/**/*.ts", "site/**/*.ts", "*.ts"];
const NOT_OURS = ["**/node_modules/**", "**/dist/**", "site/out/**", "**/gen/**", "**/*.d.ts", "out/**"];

/** Read and parse every TypeScript file of the repository that a person wrote. @throws {Error} when one does not parse. */
export function readSources(root: string): SourceFile[] {
  const paths = globSync(SOURCES, { cwd: root, exclude: NOT_OURS }).toSorted();
  return paths.map((path) => parseSource(path.replaceAll("\\", "/"), readFileSync(join(root, path), "utf8")));
}

/** List every Markdown page of the repository, sorted. */
export function readPages(root: string): string[] {
  return globSync("**/*.md", { cwd: root, exclude: NOT_OURS })
    .map((path) => path.replaceAll("\\", "/"))
    .toSorted();
}

/** Read the pages that say where things are: the packages' README.md. */
export function readMaps(root: string): Page[] {
  return globSync("packages/*/README.md", { cwd: root })
    .toSorted()
    .map((path) => ({ path: path.replaceAll("\\", "/"), text: readFileSync(join(root, path), "utf8") }));
}

interface PackageJson {
  readonly name?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Read every package.json of the workspace, the root's with `dir` "". */
export function readPackages(root: string): PackageFacts[] {
  const dirs = ["", ...globSync(["packages/*", "examples/*", "scripts", "site"], { cwd: root })].filter((dir) =>
    existsSync(join(root, dir, "package.json")),
  );
  return dirs.toSorted().map((dir) => {
    const json = JSON.parse(readFileSync(join(root, dir, "package.json"), "utf8")) as PackageJson;
    const dependencies = Object.keys({ ...json.dependencies, ...json.optionalDependencies, ...json.peerDependencies });
    return { dir, name: json.name ?? dir, dependencies, devDependencies: Object.keys(json.devDependencies ?? {}) };
  });
}
