import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

/** Where Debian's package user-mode-linux has the modules of its kernel. */
const MODULES = "/usr/lib/uml/modules";
const TIMEOUT_MS = 300_000;
const FLAGS = ["--conditions=@turnout/source", "--no-warnings"];

/** What a run in the guest needs. */
export interface GuestRun {
  /** Kernel modules, loaded in this order before it begins; what the script itself loads with modprobe is found as well. */
  readonly modules: readonly string[];
  /** A module of ours that Node runs there, by its path. */
  readonly script: string;
  readonly args?: readonly string[];
}

/**
 * Run a script of ours in a user-mode Linux kernel of its own, on this machine's file tree, and read what it printed as JSON. For tests of what this
 * machine's kernel lacks: IPVS, dummy devices.
 *
 * Edges: the guest boots in two seconds and is several times slower than the machine. It writes to a folder of its own alone.
 * @throws {Error} when the script fails, with what it printed, or when the guest doesn't come up.
 */
export async function runInGuest({ modules, script, args = [] }: GuestRun): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), "turnout-guest-"));
  try {
    await mkdir(join(folder, "lib"));
    await symlink(MODULES, join(folder, "lib/modules"));
    const init = join(folder, "init.sh");
    await writeFile(init, initScript(folder, modules, [process.execPath, ...FLAGS, script, ...args]));
    await chmod(init, 0o755);
    const kernel = [
      "mem=1G",
      "root=/dev/root",
      "rootfstype=hostfs",
      "rootflags=/",
      "rw",
      `init=${init}`,
      "con=null",
      "con0=fd:0,fd:1",
      "quiet",
    ];
    const own = [`uml_dir=${folder}/`, "umid=guest"];
    const { stdout } = await promisify(execFile)("linux.uml", [...kernel, ...own], { timeout: TIMEOUT_MS, killSignal: "SIGKILL" });
    const read = (name: string): Promise<string> => readFile(join(folder, name), "utf8").catch(() => "");
    const code = (await read("code")).trim();
    if (code !== "0") throw new Error(`in the guest ${script} ended with "${code}": ${await read("err")}${code === "" ? stdout : ""}`);
    return JSON.parse(await read("out"));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function initScript(folder: string, modules: readonly string[], command: readonly string[]): string {
  return `#!/bin/sh
export PATH=${dirname(process.execPath)}:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C MODPROBE_OPTIONS='-d ${folder}'
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run
ip link set lo up
for module in ${modules.join(" ")}; do modprobe $module || halt -f; done 2>${folder}/err
cd /run
${command.join(" ")} >${folder}/out 2>${folder}/err
echo $? >${folder}/code
halt -f
`;
}
