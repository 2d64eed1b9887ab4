import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, mkdirSync, readFileSync, rmSync, statfsSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { IPVS_MODULES } from "./modules.ts";
import { bootFiles, hiddenFolders, KEEPER, KERNEL_PATH, kernelArguments, MODULES_PATH } from "./boot.ts";
import type { VmPlan } from "./boot.ts";
import { parseNews } from "./news.ts";
import type { VmMessages } from "./news.ts";

/** What to run in a guest, and how. */
export interface VmOptions {
  /** A program of the host's file tree and its arguments; {@link nodeCommand} makes that of a script for Node. */
  readonly command: readonly [file: string, ...args: string[]];
  /** Variables besides PATH, HOME and TMPDIR; the program gets none of this process's. */
  readonly env?: Readonly<Record<string, string>>;
  /** Kernel modules to load before, e.g. {@link IPVS_MODULES}; one that can't be loaded fails the boot. What the program needs besides, the guest's kernel loads itself. */
  readonly modules?: readonly string[];
  /** Default 512. */
  readonly memoryMiB?: number;
  /** A folder of the host that the program may write to, the only one; it has the same path inside. Default: none. */
  readonly folder?: string;
  /** From the boot to the end; default 300,000. */
  readonly timeoutMs?: number;
  /** Called with what the program prints, as it prints it. */
  readonly onStdout?: (text: string) => void;
  readonly onStderr?: (text: string) => void;
  /** Called with each line that the program writes to the file that its variable TURNOUT_VM_REPORT names. */
  readonly onReport?: (line: string) => void;
}

/** How a program ended in a guest. */
export interface VmResult {
  /** 128 and the signal's number when a signal ended it, as in a shell. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What went wrong around a program, not in it: the words that Turnout's own errors begin with. */
type VmErrorCode = "host_unsupported" | "timed_out" | "tool_failed" | "tool_missing";

const DEFAULT_TIMEOUT_MS = 300_000;
const DEFAULT_MEMORY_MIB = 512;
const INSTALL = "apt-get install -y --no-install-recommends user-mode-linux kmod";
/** How much of what the guest's kernel printed goes into an error, in UTF-16 code units. */
const CONSOLE_TAIL = 1_000;

/**
 * The command that runs a script with this process's Node; TypeScript with the sources of Turnout's packages, or as they were `built`: in a guest that
 * starts twice as fast, and so does each process of Node that the script starts.
 */
export function nodeCommand(
  script: string | URL,
  args: readonly string[] = [],
  packages: "sources" | "built" = "sources",
): [file: string, ...args: string[]] {
  const path = script instanceof URL ? fileURLToPath(script) : script;
  const conditions = path.endsWith(".ts") && packages === "sources" ? ["--conditions=@turnout/source"] : [];
  return [process.execPath, ...conditions, path, ...args];
}

/**
 * Boot a guest, user-mode Linux of Debian's package, run one program in it to its end, and take the guest down. Needs no rights: in the guest the program is root.
 *
 * Shape: the program finds the host's file tree, which it can only read, but `/tmp`, `/run` and `/dev` of its own, a fresh network with the loopback device up,
 * and every kernel module of the package.
 * Edges: the guest has one CPU, and its kernel is a Linux 6.1 whose nf_tables has no family ip, ip6 or inet. Neither processes nor files stay behind, also when
 * this process is killed; what a program still ran when it ended goes too.
 * @throws {Error} `tool_missing` without the package, `host_unsupported` for a module that can't be loaded, `tool_failed` when the guest breaks,
 *   `timed_out`. The message is one line: code, what, detail.
 */
export async function runInVm(options: VmOptions): Promise<VmResult> {
  const missing = [KERNEL_PATH, MODULES_PATH].find((path) => !existsSync(path));
  if (missing !== undefined) throw vmError("tool_missing", `${missing} is not installed`, INSTALL);
  const plan = planFor(options);
  const child = boot(plan);
  try {
    return await outcomeOf(child, options);
  } finally {
    // The keeper has done so, if it lived to do it.
    rmSync(plan.home, { recursive: true, force: true });
  }
}

/**
 * Run a program in a guest, and read what it printed as JSON.
 *
 * @throws {Error} as {@link runInVm}; `tool_failed` when the program fails, with the end of what it wrote to stderr.
 */
export async function jsonFromVm(options: VmOptions): Promise<unknown> {
  const { code, stdout, stderr } = await runInVm(options);
  if (code !== 0) throw vmError("tool_failed", `a program in a guest ended with exit code ${code}`, tailOf(stderr));
  return JSON.parse(stdout);
}

function planFor(options: VmOptions): VmPlan {
  const { command, env = {}, modules = [], memoryMiB = DEFAULT_MEMORY_MIB, folder } = options;
  const cwd = process.cwd();
  const path = [dirname(process.execPath), process.env["PATH"], "/usr/sbin:/usr/bin:/sbin:/bin"].join(":");
  return {
    home: mkdtempSync(join(tmpdir(), `turnout-guest-${process.pid}-`)),
    command,
    cwd,
    env: { PATH: path, ...env },
    modules,
    memoryMiB,
    readable: hiddenFolders([`${cwd}/`, process.execPath, ...command]),
    ...(folder === undefined ? {} : { writable: folder }),
  };
}

function boot(plan: VmPlan): ChildProcess {
  const { home, memoryMiB } = plan;
  // modprobe -d HOME looks into HOME/lib/modules.
  mkdirSync(join(home, "lib"));
  symlinkSync(MODULES_PATH, join(home, "lib/modules"));
  for (const { name, text } of bootFiles(plan)) writeFileSync(join(home, name), text, { mode: 0o755 });
  return spawn("sh", ["-c", KEEPER, "turnout-guest", home, KERNEL_PATH, ...kernelArguments(plan)], {
    // A process group of its own, for the keeper to end.
    detached: true,
    stdio: ["pipe", "pipe", "pipe", "pipe", "pipe", "pipe"],
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: home, TMPDIR: memoryFolder(memoryMiB) },
  });
}

/** Where the guest's memory lies as a file without a name: where files are memory, if they may be executed there and there is enough of it, as in few containers. */
function memoryFolder(memoryMiB: number): string {
  const [, , , flags] = /^\S+ (\/dev\/shm) (tmpfs) (\S+)/m.exec(readFileSync("/proc/mounts", "utf8")) ?? [];
  if (flags === undefined || flags.split(",").includes("noexec")) return tmpdir();
  const { bavail, bsize } = statfsSync("/dev/shm");
  return bavail * bsize >= memoryMiB << 20 ? "/dev/shm" : tmpdir();
}

function outcomeOf(child: ChildProcess, options: VmOptions): Promise<VmResult> {
  const { command, timeoutMs = DEFAULT_TIMEOUT_MS, onReport } = options;
  const [kernelOut, kernelErr, out, err, news] = child.stdio.slice(1) as [Readable, Readable, Readable, Readable, Readable];
  const text = { console: "", stdout: "", stderr: "" };
  const failure = (code: VmErrorCode, what: string, hint: string): Error => vmError(code, what, `${command.join(" ")}: ${hint}`);
  return new Promise((resolve, reject) => {
    let verdict: VmResult["code"] | Error | undefined;
    const end = (given: VmResult["code"] | Error): void => {
      verdict ??= given;
      child.stdin?.destroy();
    };
    const timer = setTimeout(() => end(failure("timed_out", "running a program in a guest", `not done in ${timeoutMs} ms`)), timeoutMs);
    for (const stream of [kernelOut, kernelErr]) stream.setEncoding("utf8").on("data", (chunk: string) => (text.console += chunk));
    collect(out, (chunk) => (text.stdout += chunk), options.onStdout);
    collect(err, (chunk) => (text.stderr += chunk), options.onStderr);
    createInterface({ input: news })
      .on("line", (line) => {
        const reported = parseNews(line);
        if (reported.kind === "report") onReport?.(reported.line);
        else if (reported.kind === "exit") end(reported.code);
        else if (reported.kind !== "started") end(failure(...bootFailure(reported, text.console)));
      })
      .on("error", (error) => end(failure("tool_failed", "reading a guest's news", error.message)));
    child.on("error", (error) => end(failure("tool_failed", "starting a guest", error.message)));
    // Where the keeper was killed, the half of it that waits for stdin does its work.
    child.on("exit", () => child.stdin?.destroy());
    child.on("close", () => {
      clearTimeout(timer);
      verdict ??= failure("tool_failed", "the guest ended before the program", tailOf(text.console));
      if (typeof verdict === "number") resolve({ code: verdict, stdout: text.stdout, stderr: text.stderr });
      else reject(verdict);
    });
  });
}

function collect(stream: Readable, keep: (chunk: string) => void, notify: ((chunk: string) => void) | undefined): void {
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    keep(chunk);
    notify?.(chunk);
  });
}

function bootFailure(reported: Extract<VmMessages, { kind: "unloaded" | "broken" }>, consoleText: string): [VmErrorCode, string, string] {
  if (reported.kind === "broken") return ["tool_failed", "the guest could not be set up", tailOf(consoleText)];
  return ["host_unsupported", `the guest's kernel can't load the modules ${reported.modules.join(", ")}`, reported.reason];
}

function vmError(code: VmErrorCode, what: string, detail: string): Error {
  return new Error(`[${code}] ${what}: ${detail}`);
}

function tailOf(text: string): string {
  return text.trim().slice(-CONSOLE_TAIL);
}

/** A guest is slow, and has one CPU: all moves between proxies take the longest. */
const AGAIN_TIMEOUT_MS = 3 * 3_600_000;
/** A process of Node for each place of a cluster. */
const AGAIN_MEMORY_MIB = 2_048;

/** What a program needs of the host besides. */
export interface VmNeeds {
  /** Variables of the environment that it gets, too. */
  readonly variables?: readonly string[];
  /** It is seen in the guest, which has a /tmp of its own. */
  readonly folder?: string | undefined;
}

/**
 * Run this program again with its arguments, `--in-vm` instead of `--vm` behind them, in a guest where there is a kernel with IPVS. What it prints is printed here.
 *
 * Shape: whether it ended well.
 * @throws {Error} as {@link runInVm}.
 */
export async function runAgainInVm({ variables = [], folder }: VmNeeds = {}): Promise<boolean> {
  const [, program = "", ...args] = process.argv;
  const env = variables.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]));
  const { code } = await runInVm({
    command: nodeCommand(program, [...args.filter((arg) => arg !== "--vm"), "--in-vm"], "built"),
    modules: IPVS_MODULES,
    ...(folder === undefined ? {} : { folder }),
    memoryMiB: AGAIN_MEMORY_MIB,
    timeoutMs: AGAIN_TIMEOUT_MS,
    env: Object.fromEntries(env),
    onStdout: (text) => process.stdout.write(text),
    onStderr: (text) => process.stderr.write(text),
  });
  return code === 0;
}
