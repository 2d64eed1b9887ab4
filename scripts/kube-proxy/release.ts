import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compare } from "semver";

/** A feature gate as the sources declare it. */
export interface DeclaredGate {
  readonly name: string;
  /** Stage and default of its last entry, e.g. `beta, on`; undefined: not found. */
  readonly state: string | undefined;
}

/** What the sources of one release of kube-proxy declare. */
export interface Release {
  readonly version: string;
  readonly gates: readonly DeclaredGate[];
  readonly flags: readonly string[];
}

/** The modules with feature gates that kube-proxy knows; those of the staging modules have other version numbers. */
const MODULES: readonly (readonly [module: string, files: string])[] = [
  ["kubernetes", "pkg/features/*.go"],
  ["apiserver", "pkg/**/*.go"],
  ["apiextensions-apiserver", "pkg/**/*.go"],
  ["client-go", "**/*.go"],
  ["component-base", "**/*.go"],
  ["controller-manager", "**/*.go"],
];

function go(args: readonly string[]): string {
  // Outside of any module, so that no go.mod decides about versions.
  const { stdout, stderr, status, error } = spawnSync("go", args, { cwd: tmpdir(), encoding: "utf8", maxBuffer: 1 << 26 });
  if (error !== undefined) throw new Error("go can't be started: install Go 1.26 or newer", { cause: error });
  if (status !== 0) throw new Error(`go ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** The releases of Kubernetes that the Go module proxy lists, oldest first. @throws where Go or the proxy fails. */
export function listReleases(): readonly string[] {
  const { Versions } = JSON.parse(go(["list", "-m", "-versions", "-json", "k8s.io/kubernetes@latest"])) as { Versions: readonly string[] };
  return Versions.map((version) => version.slice(1)).filter((version) => /^\d+\.\d+\.\d+$/.test(version));
}

/** Read what a release declares, from the Go module proxy. @throws where Go or the proxy fails. */
export function readRelease(version: string): Release {
  const sources = new Map(MODULES.map(([module, files]) => [module, sourcesOf(module, files, version)]));
  const options = sourcesOf("kubernetes", "cmd/kube-proxy/app/*.go", version);
  return { version, gates: declaredGates([...sources.values()].join("\n")), flags: declaredFlags(options) };
}

function sourcesOf(module: string, files: string, version: string): string {
  const tag = module === "kubernetes" ? `v${version}` : `v0.${version.replace(/^1\./, "")}`;
  const { Dir } = JSON.parse(go(["mod", "download", "-json", `k8s.io/${module}@${tag}`])) as { Dir: string };
  const found = globSync(files, { cwd: Dir }).filter((name) => !name.endsWith("_test.go"));
  if (found.length === 0) throw new Error(`k8s.io/${module}@${tag} has no ${files}`);
  return found.map((name) => readFileSync(join(Dir, name), "utf8")).join("\n");
}

/** Find the feature gates that Go sources declare. Pure. */
export function declaredGates(source: string): readonly DeclaredGate[] {
  const names = new Map(
    [...source.matchAll(/^\s*(\w+)\s+(?:featuregate\.)?Feature\s*=\s*"(\w+)"/gm)].map(([, constant, name = ""]) => [constant, name]),
  );
  const states = new Map<string | undefined, string>();
  for (const [, constant, specs = ""] of source.matchAll(/\b(\w+):\s*\{((?:\s*\{Version: [^}]*\},?(?:\s*\/\/[^\n]*)?)+)\s*\}/g)) {
    const [, isOn, stage] = [...specs.matchAll(/Default: (true|false)[^}]*PreRelease: (?:featuregate\.)?(\w+)/g)].at(-1) ?? [];
    if (stage !== undefined) states.set(constant, `${stage.toLowerCase()}, ${isOn === "true" ? "on" : "off"}`);
  }
  return [...names].map(([constant, name]) => ({ name, state: states.get(constant) })).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Find the flags that kube-proxy's sources declare. Pure. */
export function declaredFlags(source: string): readonly string[] {
  return [...source.matchAll(/\bfs\.\w+\([^"\n]*"([a-z][a-z0-9-]*)"/g)].map(([, name = ""]) => name).toSorted();
}

/** Say what a release changes, a line each. Pure. */
export function changesBetween(before: Release, after: Release): readonly string[] {
  const states = new Map(before.gates.map(({ name, state }) => [name, state]));
  const gates = after.gates.flatMap(({ name, state }) => {
    if (!states.has(name)) return [`new gate ${name} (${state ?? "unknown state"})`];
    return states.get(name) === state ? [] : [`gate ${name}: ${state ?? "unknown"}, it was ${states.get(name) ?? "unknown"}`];
  });
  const gone = before.gates
    .filter(({ name }) => !after.gates.some((gate) => gate.name === name))
    .map(({ name }) => `no gate ${name} any more`);
  const added = after.flags.filter((flag) => !before.flags.includes(flag)).map((flag) => `new flag --${flag}`);
  const removed = before.flags.filter((flag) => !after.flags.includes(flag)).map((flag) => `no flag --${flag} any more`);
  return [...added, ...removed, ...gates, ...gone];
}

/** The newest release of each minor version that has versioned or plain gates, below one version. Pure. */
export function newestOfMinors(releases: readonly string[], below: string): readonly string[] {
  const minorOf = (version: string): number => Number(version.split(".")[1]);
  const older = releases.filter((version) => minorOf(version) < minorOf(below) && minorOf(version) >= OLDEST_MINOR);
  return [...Map.groupBy(older.toSorted(compare), minorOf).values()].map((same) => same.at(-1) ?? "");
}

/** Gates that went before it are not known: no cluster that is supported has them. */
const OLDEST_MINOR = 29;
