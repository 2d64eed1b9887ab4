import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { release } from "node:os";
import { coerce, compare } from "semver";

declare module "vitest" {
  interface TaskMeta {
    /** Why a test was skipped, a line per unmet need: `nft>=1.0.1 (found 0.9.8)`. */
    unmetNeeds?: readonly string[];
  }
}

/** Options for vitest's `describe(name, options, fn)` and `it(name, options, fn)`. */
export interface NeedsOptions {
  readonly skip: boolean;
  readonly meta: { unmetNeeds?: readonly string[] };
}

/** How needs are looked up on this machine; the tests of this file pass a fake one. */
export interface NeedsHost {
  readonly isRoot: boolean;
  readonly kernel: string;
  /** As `process.arch`. */
  readonly machine: string;
  /** First version-like text a tool prints about itself, "" when it prints none, undefined when there is no such tool. */
  versionOf(tool: string): string | undefined;
  /** Whether a fresh network namespace can be made here. */
  canUnshare(): boolean;
  /** Whether there is such a file. */
  hasFile(path: string): boolean;
  /** Whether a file system of this type is mounted, e.g. `cgroup2`. */
  hasMount(type: string): boolean;
  /** Whether apt-get could install this package here, as far as its lists say. */
  canInstall(debianPackage: string): boolean;
}

const VERSION_FLAG: Readonly<Record<string, string>> = { ip: "-V", tc: "-V", bridge: "-V", unshare: "-V" };

/** Debian's own command `wine` is of another package, and adds only what sets a desktop up. */
export const WINE_LOADER = "/usr/lib/wine/wine64";

/** Debian's Chromium without windows: half the size of the package with them. */
export const CHROMIUM = "/usr/bin/chromium-headless-shell";

const MOUNTS = "/proc/self/mountinfo";

/** A PATH that also has the places of administration tools, which a plain user's lacks. */
const TOOL_PATH = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;

function runTool(file: string, args: readonly string[]): { found: boolean; ok: boolean; output: string } {
  const result = spawnSync(file, args, { encoding: "utf8", timeout: 10_000, env: { ...process.env, PATH: TOOL_PATH, LC_ALL: "C" } });
  return { found: result.error === undefined, ok: result.status === 0, output: `${result.stdout ?? ""}${result.stderr ?? ""}` };
}

/** Look at the machine this runs on. */
export function createNeedsHost(): NeedsHost {
  const isRoot = process.getuid?.() === 0;
  return {
    isRoot,
    kernel: release(),
    machine: process.arch,
    versionOf(tool) {
      const { found, output } = runTool(tool, [VERSION_FLAG[tool] ?? "--version"]);
      return found ? (/\d+(?:\.\d+)+/.exec(output)?.[0] ?? "") : undefined;
    },
    canUnshare: () => runTool("unshare", [isRoot ? "-n" : "-rn", "true"]).ok,
    hasFile: existsSync,
    hasMount: (type) => existsSync(MOUNTS) && readFileSync(MOUNTS, "utf8").includes(` - ${type} `),
    canInstall: (debianPackage) => /^ +Candidate: [^(\s]/m.test(runTool("apt-cache", ["policy", debianPackage]).output),
  };
}

/** Compare dotted versions of programs: negative when `left` is older. A missing part counts as 0, and no version is the oldest. */
export function compareVersions(left: string, right: string): number {
  return compare(coerce(left) ?? "0.0.0", coerce(right) ?? "0.0.0");
}

/** What user-mode Linux and loading its modules take; in Debian for amd64 alone. */
const UML_PACKAGE = "user-mode-linux";
const UML_INSTALL = `apt-get install -y --no-install-recommends ${UML_PACKAGE} kmod`;

/** Where no package is to be had the need is the package: only that may be allowed in scripts/allowed-skips.txt. */
function unmetUml(host: NeedsHost): string | undefined {
  if (["linux.uml", "modprobe"].every((tool) => host.versionOf(tool) !== undefined)) return undefined;
  if (host.canInstall(UML_PACKAGE)) return `uml (not installed; run: ${UML_INSTALL})`;
  return `${UML_PACKAGE} (no such package here; where there is one: ${UML_INSTALL})`;
}

/** What scripts/build-bpf.sh compiles with; libbpf-dev brings libbpf itself. */
function unmetBpf(host: NeedsHost): string | undefined {
  const hasTools = ["clang", "llvm-strip"].every((tool) => host.versionOf(tool) !== undefined);
  if (hasTools && host.hasFile("/usr/include/bpf/bpf_helpers.h")) return undefined;
  return "bpf (not installed; run: apt-get install -y --no-install-recommends clang llvm libbpf-dev)";
}

/** What compiles libraries for Windows, and runs its programs. Wine runs those of its own machine alone. */
function unmetWine(host: NeedsHost): string | undefined {
  if (host.machine !== "x64") return `x64 (Wine runs Node for Windows on x64 alone, this is ${host.machine})`;
  if (host.hasFile(WINE_LOADER) && host.versionOf("x86_64-w64-mingw32-gcc") !== undefined) return undefined;
  return "wine (not installed; run: apt-get install -y --no-install-recommends wine64 gcc-mingw-w64-x86-64)";
}

/** What shows pages to tests. */
function unmetChromium(host: NeedsHost): string | undefined {
  if (host.hasFile(CHROMIUM)) return undefined;
  return "chromium (not installed; run: apt-get install -y --no-install-recommends chromium-headless-shell)";
}

/**
 * Tell why a need is not met.
 *
 * Shape: a need is `root`, `netns` (a network namespace can be made), `uml` (a guest of the laboratory can be booted), `bpf` (BPF programs
 * can be compiled), `wine` (programs of Windows can be compiled and run), `chromium` (pages can be looked at), `cgroup2` (it is mounted), `kernel>=6.1`, a tool (`nft`), or a tool and the oldest version that will do (`nft>=1.0.1`). The answer starts with the need itself; undefined means that it is met.
 * @throws {Error} when the need is none of these.
 */
export function unmetNeed(need: string, host: NeedsHost): string | undefined {
  if (need === "root") return host.isRoot ? undefined : "root (not root)";
  if (need === "netns") return host.canUnshare() ? undefined : "netns (unshare -n is refused)";
  if (need === "uml") return unmetUml(host);
  if (need === "bpf") return unmetBpf(host);
  if (need === "wine") return unmetWine(host);
  if (need === "chromium") return unmetChromium(host);
  if (need === "cgroup2")
    return host.hasMount("cgroup2") ? undefined : "cgroup2 (not mounted; run: mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified)";
  const match = /^([a-z][\w.-]*)(?:>=(\d+(?:\.\d+)*))?$/.exec(need);
  const tool = match?.[1];
  if (tool === undefined)
    throw new Error(`"${need}" is no need: say root, netns, uml, bpf, wine, chromium, cgroup2, kernel>=6.1, nft or nft>=1.0.1`);
  const oldest = match?.[2];
  const found = tool === "kernel" ? host.kernel : host.versionOf(tool);
  if (found === undefined) return `${need} (not installed)`;
  if (oldest !== undefined && compareVersions(found, oldest) < 0) return `${need} (found ${found === "" ? "no version" : found})`;
  return undefined;
}

const host = createNeedsHost();
const answers = new Map<string, string | undefined>();

/**
 * Make a test, or a whole `describe`, depend on what the machine can do: `describe("real kernel", needs("root", "nft>=1.0.1"), () => …)`.
 *
 * Edges: each need is tried out once per test file; a skip carries its reasons, and the run fails when a reason isn't
 * in scripts/allowed-skips.txt, so a test can't fall silent in CI.
 * @throws {Error} when a need isn't one that {@link unmetNeed} knows.
 */
export function needs(...wanted: readonly string[]): NeedsOptions {
  for (const need of wanted) if (!answers.has(need)) answers.set(need, unmetNeed(need, host));
  const unmetNeeds = wanted.map((need) => answers.get(need)).filter((answer) => answer !== undefined);
  return unmetNeeds.length === 0 ? { skip: false, meta: {} } : { skip: true, meta: { unmetNeeds } };
}

/**
 * Leave a test out for a reason of its own, the same way: `need` is the name that scripts/allowed-skips.txt must allow, e.g. `fake-host`.
 *
 * Edges: for what no machine can be looked at for; the reason is printed, and is as good as who wrote it.
 */
export function leftOut(need: string, reason: string): NeedsOptions {
  return { skip: true, meta: { unmetNeeds: [`${need} (${reason})`] } };
}
