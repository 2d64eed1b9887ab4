import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { compare } from "semver";
import { parse } from "yaml";
import { changesBetween, listReleases, newestOfMinors, readRelease } from "./release.ts";

/** One start of kube-proxy that is tried: its flags, and the lines of its configuration file below `kind`, if it has one. */
interface Case {
  readonly args: readonly string[];
  readonly file?: string;
  /** What it has in force is written down, too: the values that differ from the defaults. */
  readonly isWritten?: true;
}

/** All that is tried: `cases.yaml`. */
function readCases(): readonly Case[] {
  const { flags, sets, files } = parse(readFileSync(new URL("cases.yaml", import.meta.url), "utf8")) as {
    readonly flags: Readonly<Record<string, readonly string[]>>;
    readonly sets: readonly (readonly string[])[];
    readonly files: readonly string[];
  };
  const values = Object.entries(flags).map(([name, some]) => some.map((value) => `--${name}=${value}`));
  // Each flag twice, with neighbours, in both orders.
  const pairs = values.flatMap((some) => some.slice(1).map((second, index) => [some[index] ?? "", second]));
  return [
    ...values.flat().map((flag): Case => ({ args: [flag] })),
    ...pairs.flatMap((pair) => [pair, pair.toReversed()]).map((args): Case => ({ args, isWritten: true })),
    ...sets.map((args): Case => ({ args })),
    ...files.map((file): Case => ({ args: [], file })),
  ];
}

/**
 * Write down what can be set of kube-proxy, and what it says to each of the cases of cases.yaml: `npm run kube-proxy:update -- DIRECTORY`.
 *
 * The directory has kube-proxy's sources in `src`, which `go run` works in, and the program built from them in `bin/kube-proxy`.
 * Each case is one start with --cleanup in an empty network namespace: flags, file and checks are those of every start, and nothing outlives it.
 * Without a directory nothing is written. In any case it prints whether the Go module proxy has a newer release, and what that changes.
 */
const HEAD = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
const root = fileURLToPath(new URL("../..", import.meta.url));
const SURFACE = join(root, "packages/client/test/kube-proxy/surface.json");
const GATES = join(root, "packages/client/src/daemon/config/gen/kube-proxy-gates.ts");

interface Gate {
  readonly name: string;
  readonly stage: string;
  readonly default: boolean;
  readonly locked: boolean;
}

interface Printed {
  readonly flags: readonly object[];
  readonly fields: readonly string[];
  readonly featureGates: readonly Gate[];
}

const [directory = ""] = process.argv.slice(2);
const program = join(directory, "bin/kube-proxy");
let fieldNames: ReadonlySet<string> = new Set();
let defaults: Readonly<Record<string, unknown>> = {};
const scratch = mkdtempSync(join(tmpdir(), "kube-proxy-"));

/** What a Go program that imports kube-proxy's command tells of it. */
function printed(source: string): Printed {
  const folder = join(source, "cmd/turnout-surface");
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(join(folder, "main.go"), readFileSync(new URL("main.go", import.meta.url)));
    const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-mod=mod" };
    const { stdout, stderr, status } = spawnSync("go", ["run", "-trimpath", "./cmd/turnout-surface"], {
      cwd: source,
      env,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`go run: ${stderr}`);
    return JSON.parse(stdout) as Printed;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function start(args: readonly string[]): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync("unshare", ["--net", program, ...args], { encoding: "utf8" });
  return { status, said: `${stdout}${stderr}` };
}

/** Rules that can't be torn down are a matter of the host, not of the flags. */
function verdict({ args, file, isWritten }: Case): object {
  const path = join(scratch, "config.yaml");
  if (file !== undefined) writeFileSync(path, `${HEAD}${file}\n`);
  const { status, said } = start(["--cleanup", ...args, ...(file === undefined ? [] : [`--config=${path}`])]);
  const accepted = status === 0 || said.includes("while tearing down rules");
  const why = /(?:^Error: |command failed" err=)(.*)$/m.exec(said)?.[1]?.replaceAll(path, "config.yaml");
  return {
    args,
    ...(file === undefined ? {} : { file }),
    accepted,
    ...(accepted || why === undefined ? {} : { why }),
    ...(accepted && isWritten ? { written: changed(args) } : {}),
  };
}

/** The values in force that are not kube-proxy's defaults, by their paths; undefined: it writes no file of them. */
function changed(args: readonly string[]): object | undefined {
  const { status, values } = written(args);
  if (status !== 0) return undefined;
  return Object.fromEntries(Object.entries(values).filter(([path, value]) => JSON.stringify(defaults[path]) !== JSON.stringify(value)));
}

/** Leaves of an object by their paths. */
function leaves(value: unknown, path: string, known: ReadonlySet<string>): readonly (readonly [string, unknown])[] {
  if (known.has(path) || typeof value !== "object" || value === null) return [[path, value]];
  return Object.entries(value).flatMap(([name, inner]) => leaves(inner, path === "" ? name : `${path}.${name}`, known));
}

/** The file that kube-proxy writes for some flags, by the paths of its fields; empty: it wrote none. */
function written(args: readonly string[]): { readonly status: number | null; readonly values: Readonly<Record<string, unknown>> } {
  const path = join(scratch, "written.yaml");
  const { status } = start([...args, `--write-config-to=${path}`]);
  if (status !== 0) return { status, values: {} };
  const { apiVersion: _version, kind: _kind, ...rest } = parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  return { status, values: Object.fromEntries(leaves(rest, "", fieldNames)) };
}

/** An object as JSON, with one line for each entry of its lists. */
function pretty(entries: Readonly<Record<string, unknown>>): string {
  const rows = Object.entries(entries).map(([name, value]) => {
    if (!Array.isArray(value)) return `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`;
    return `  ${JSON.stringify(name)}: [\n${value.map((one) => `    ${JSON.stringify(one)}`).join(",\n")}\n  ]`;
  });
  return `{\n${rows.join(",\n")}\n}\n`;
}

/** The version of the program. */
function versionOf(): string {
  const [, version] = /^Kubernetes v(\d+\.\d+\.\d+)$/m.exec(start(["--version"]).said) ?? [];
  if (version === undefined || version.startsWith("0."))
    throw new Error(`${program} does not say its version: build it with that of its sources`);
  return version;
}

/** Gates of older releases that a release doesn't have any more, each with the last minor version that had it. */
function goneGates(version: string, gates: readonly Gate[]): ReadonlyMap<string, string> {
  const known = new Set(gates.map(({ name }) => name));
  const older = newestOfMinors(listReleases(), version).map(readRelease);
  return new Map(
    older.flatMap((release) =>
      release.gates
        .filter(({ name }) => !known.has(name))
        .map(({ name }) => [name, release.version.split(".").slice(0, 2).join(".")] as const),
    ),
  );
}

function gatesSource(version: string, gates: readonly Gate[], gone: ReadonlyMap<string, string>): string {
  const line = ({ name, stage, default: isOn, locked }: Gate): string => `${name} ${stage} ${isOn}${locked ? " locked" : ""}`;
  return [
    "/** The kube-proxy whose flags, fields and feature gates are known. */",
    `export const KUBE_PROXY_VERSION = "${version}";`,
    "",
    "/** Its feature gates, each a line: name, stage, default, and whether it can't be changed. Written by `npm run kube-proxy:update`. */",
    "export const KUBE_PROXY_GATES = `",
    ...gates.map(line),
    "`;",
    "",
    "/** Gates that older releases had, each a line: name, and the last minor version with it. Written by `npm run kube-proxy:update`. */",
    "export const REMOVED_GATES = `",
    ...[...gone].map(([name, last]) => `${name} ${last}`).toSorted(),
    "`;",
    "",
  ].join("\n");
}

/** Say what the newest release changes. */
function printNews(): void {
  const [, known = ""] = /KUBE_PROXY_VERSION = "(.*)"/.exec(readFileSync(GATES, "utf8")) ?? [];
  const newest = listReleases().toSorted(compare).at(-1) ?? known;
  if (compare(newest, known) <= 0) return console.log(`kube-proxy ${known} is known, and the newest in the Go module proxy`);
  const changes = changesBetween(readRelease(known), readRelease(newest));
  console.log(
    [`kube-proxy ${newest} is newer than ${known}, which is known; it changes:`, ...changes.map((line) => `  ${line}`)].join("\n"),
  );
  console.log("build it, and pass its folder: npm run kube-proxy:update -- DIRECTORY (src: the sources, bin/kube-proxy: the program)");
}

function update(): void {
  const version = versionOf();
  const { flags, fields, featureGates } = printed(join(directory, "src"));
  writeFileSync(GATES, gatesSource(version, featureGates, goneGates(version, featureGates)));
  const sorted = fields.toSorted();
  fieldNames = new Set(fields);
  defaults = written([]).values;
  if (Object.keys(defaults).length === 0) throw new Error(`${program} writes no file of its defaults`);
  writeFileSync(SURFACE, pretty({ version, flags, fields: sorted, defaults, cases: readCases().map(verdict) }));
}

try {
  if (directory !== "") update();
  printNews();
} finally {
  rmSync(scratch, { recursive: true });
}
