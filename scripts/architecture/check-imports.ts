import { posix } from "node:path";
import type { Finding } from "./finding.ts";
import type { Import, SourceFile } from "./source-file.ts";

/** What the checks know of a package.json. */
export interface PackageFacts {
  /** Folder relative to the repository, e.g. `packages/core`; "" is the root. */
  readonly dir: string;
  readonly name: string;
  /** dependencies, optionalDependencies and peerDependencies. */
  readonly dependencies: readonly string[];
  readonly devDependencies: readonly string[];
}

/** The packages that each package may import, by its layer; one that isn't listed may import everything, backends excepted. */
export type PackageLayers = Readonly<Record<string, readonly string[]>>;

/** Read the table `| package | may import |` of a page, as far as it names packages: what stands in brackets or behind a semicolon is for people. Pure. */
export function packageLayersIn(page: string): PackageLayers {
  const [, lines = ""] = /^\| package \| may import \|\n\|---.*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const rows = lines.matchAll(/^\| `([a-z]+)(?:-…)?` \| ([^;(|]*)/gm);
  return Object.fromEntries(
    Array.from(rows, ([, name = "", says = ""]) => [name, says.trim() === "nothing" ? [] : says.trim().split(", ")]),
  );
}

/** Only these know a backend by name: the one registry file, and what is never published. */
function mayNameBackends(path: string): boolean {
  return path === "packages/cli/src/registry.ts" || /^(?:e2e|bench|examples|site)\//.test(path);
}

/** The layer a file lives in: its package's folder name, or its first folder. */
export function layerOf(path: string): string {
  return /^packages\/([^/]+)\//.exec(path)?.[1] ?? path.split("/")[0] ?? "";
}

function folderOf(path: string): string {
  const layer = layerOf(path);
  return path.startsWith("packages/") ? `packages/${layer}` : layer;
}

function siblingProblem(file: SourceFile, target: string, layers: PackageLayers): string | undefined {
  const layer = layerOf(file.path);
  if (target === layer) return undefined;
  if (target === "house")
    return file.isTest || ["e2e", "bench", "site"].includes(layer)
      ? undefined
      : "only tests and what is never published import @turnout/house";
  if (target === "explain" && layer !== "cli") return "only cli imports @turnout/explain";
  // The emulator is what the server's tests list and watch.
  if ((layer === "server" || layer === "kpng") && target === "lab" && file.isTest) return undefined;
  // The kit examines what tests and fake hosts hand it, and `turnout conformance` plays it.
  if (target === "conformance" && layer !== "core" && (file.isTest || file.path.includes("/src/testing/"))) return undefined;
  // Hosts in memory are what backends ship for the kit.
  if (target === "fakes" && layer.startsWith("backend-") && (file.isTest || file.path.includes("/src/testing/"))) return undefined;
  if (target.startsWith("backend-")) {
    return mayNameBackends(file.path) ? undefined : `@turnout/${target}: only packages/cli/src/registry.ts and e2e name a backend`;
  }
  const allowed = layers[layer.startsWith("backend-") ? "backend" : layer];
  if (allowed === undefined || allowed.includes(target)) return undefined;
  return `${layer} may import ${allowed.length === 0 ? "no package of ours" : allowed.join(", ")}, not ${target}`;
}

function declarationProblem(file: SourceFile, name: string, packages: readonly PackageFacts[]): string | undefined {
  const own = packages.find((one) => one.dir === folderOf(file.path));
  const root = packages.find((one) => one.dir === "");
  if (own?.name === name) return undefined;
  const declared = [...(own?.dependencies ?? [])];
  // What is never published, and every test, may use what the root installs for all.
  if (file.isTest || !file.path.startsWith("packages/")) declared.push(...(own?.devDependencies ?? []), ...(root?.devDependencies ?? []));
  if (declared.includes(name)) return undefined;
  return `${name} is not among the dependencies of ${own?.name ?? "the root package"}`;
}

function problemOf(file: SourceFile, { specifier }: Import, packages: readonly PackageFacts[], layers: PackageLayers): string | undefined {
  if (specifier.startsWith(".")) {
    const target = posix.join(posix.dirname(file.path), specifier);
    // Configuration of a tool stands in the root, with its parts in scripts.
    const isConfiguration = !file.path.includes("/") && target.startsWith("scripts/");
    if (!isConfiguration && !target.startsWith(`${folderOf(file.path)}/`))
      return `${specifier} leaves ${folderOf(file.path)}: use the package's entry point`;
    return undefined;
  }
  if (specifier.startsWith("node:")) return undefined;
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  if (name.startsWith("@turnout/")) {
    const target = name.slice("@turnout/".length);
    const problem = siblingProblem(file, target, layers);
    if (problem !== undefined || target === "house" || !file.path.startsWith("packages/")) return problem;
  }
  return declarationProblem(file, name, packages);
}

/** Check every import against the directions of ARCHITECTURE.md, and against what the package declares. Pure. */
export function checkImports(files: readonly SourceFile[], packages: readonly PackageFacts[], layers: PackageLayers): Finding[] {
  const findings: Finding[] = [];
  for (const file of files) {
    for (const one of file.imports) {
      const what = problemOf(file, one, packages, layers);
      if (what !== undefined) findings.push({ rule: "imports", path: file.path, line: one.line, subject: one.specifier, what });
    }
  }
  const core = packages.find((one) => one.dir === "packages/core");
  for (const name of core?.dependencies ?? []) {
    findings.push({
      rule: "imports",
      path: "packages/core/package.json",
      line: 0,
      subject: name,
      what: `core has no dependencies, and now ${name}`,
    });
  }
  return findings;
}
