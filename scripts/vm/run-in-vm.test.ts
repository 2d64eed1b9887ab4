import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { describeVm } from "./describe-vm.ts";
import { IPVS_MODULES } from "./modules.ts";
import { jsonFromVm, nodeCommand, runInVm } from "./run-in-vm.ts";
import type { VmResult } from "./run-in-vm.ts";
import { IPVS_CHECKS } from "./test-support/ipvs-checks.ts";

/** A guest's traces on this machine, by the process that made it: its folder, and the processes that name it. */
function tracesOf(pid: number | undefined): readonly string[] {
  const prefix = `turnout-guest-${pid}-`;
  const folders = readdirSync(tmpdir()).filter((name) => name.startsWith(prefix));
  const processes = readdirSync("/proc").filter((entry) => {
    const file = `/proc/${entry}/cmdline`;
    return /^\d+$/.test(entry) && existsSync(file) && commandLineOf(file).includes(prefix);
  });
  return [...folders, ...processes];
}

function commandLineOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return "";
    throw error;
  }
}

describe("a guest", needs("uml", "ipvsadm", "ipset", "iptables-legacy", "nft", "ip"), () => {
  const folder = mkdtempSync(join(tmpdir(), "turnout-kept-"));
  const args = ["two words", "it's", "$HOME"];
  const outcome = Promise.withResolvers<VmResult>();
  afterAll(() => rmSync(folder, { recursive: true }));

  const checks: [name: string, run: () => Promise<void>][] = [];
  describeVm({
    it: (name, run) => checks.push([name, run]),
    names: [...Object.keys(IPVS_CHECKS), "is never reported"],
    command: nodeCommand(new URL("test-support/ipvs-vm.ts", import.meta.url), args),
    modules: IPVS_MODULES,
    env: { FOLDER: folder, VARIABLE: "it's $HOME" },
    folder,
    run: (options) => {
      const running = runInVm(options);
      running.then(outcome.resolve, outcome.reject);
      return running;
    },
  });
  const expectedFailures: Readonly<Record<string, string>> = {
    "fails with a message": "one is not two",
    "is never reported": "is never reported was never reported: the program in the guest ended with exit code 3: the last words",
    "ends well, with nothing else reported": "the program in the guest ended with exit code 3: the last words",
  };
  it.each(checks)("%s", async (name, run) => {
    const message = await run().then(
      () => undefined,
      (error: unknown) => (error as Error).message,
    );
    expect(message).toBe(expectedFailures[name]);
  });

  it("hands over exit code, stdout and stderr, and took command and variables as they were given", async () => {
    const { code, stdout, stderr } = await outcome.promise;
    expect([code, stderr]).toEqual([3, "the last words\n"]);
    expect(JSON.parse(stdout)).toEqual({ args, variable: "it's $HOME" });
  });

  it("leaves what it wrote in its folder, and nothing else", async () => {
    await outcome.promise;
    expect(readdirSync(folder)).toEqual(["kept.txt"]);
    expect(readFileSync(join(folder, "kept.txt"), "utf8")).toBe("kept");
    expect(existsSync("/tmp/gone.txt")).toBe(false);
    expect(tracesOf(process.pid)).toEqual([]);
  });
});

describe("taking a guest down", needs("uml"), () => {
  it("happens when a module can't be loaded, and says which", async () => {
    const boot = runInVm({ command: ["true"], modules: ["dummy", "ip_vs_twos", "no_such_module"] });
    await expect(boot).rejects.toThrow("[host_unsupported] the guest's kernel can't load the modules ip_vs_twos, no_such_module: true: ");
    expect(tracesOf(process.pid)).toEqual([]);
  });

  it("happens when the program fails, a script below /tmp here, and what it said is in the error where JSON was wanted of it", async () => {
    const folder = mkdtempSync("/tmp/turnout-script-");
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "script.sh"), "echo no such thing >&2; exit 3");
    await expect(jsonFromVm({ command: ["sh", join(folder, "script.sh")] })).rejects.toThrow(
      "[tool_failed] a program in a guest ended with exit code 3: no such thing",
    );
    expect(tracesOf(process.pid)).toEqual([]);
  });

  it("happens when the time is over", async () => {
    await expect(runInVm({ command: ["sleep", "1000"], timeoutMs: 100 })).rejects.toThrow("[timed_out] ");
    expect(tracesOf(process.pid)).toEqual([]);
  });

  it("happens when the process that made it gets SIGKILL", async () => {
    const index = fileURLToPath(new URL("./run-in-vm.ts", import.meta.url));
    const program = `const { runInVm } = await import(${JSON.stringify(index)});
      await runInVm({ command: ["sh", "-c", "sleep 1000 & echo up; wait"], onStdout: (text) => process.stdout.write(text) });`;
    const child = spawn(process.execPath, ["--conditions=@turnout/source", "--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    // Its folder, the keeper's two halves, and the kernel's processes.
    expect(tracesOf(child.pid).length).toBeGreaterThan(4);
    child.kill("SIGKILL");
    await expect.poll(() => tracesOf(child.pid)).toEqual([]);
  });
});
