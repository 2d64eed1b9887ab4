import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";

const SCRIPT = fileURLToPath(new URL("host-setup.sh", import.meta.url));
let bin = "";

beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), "turnout-host-setup-"));
});
afterEach(() => {
  rmSync(bin, { recursive: true, force: true });
});

/** Put a program that stands in for the real one first on PATH. */
function stub(name: string, script: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
}

function setUp(...tools: readonly string[]): { status: number | null; output: string; aptCalls: string[] } {
  const calls = join(bin, "calls");
  const env = { PATH: `${bin}:${process.env["PATH"] ?? ""}`, CALLS: calls, TMPDIR: bin };
  const { status, stdout, stderr } = spawnSync("/bin/sh", [SCRIPT, ...tools], { env, encoding: "utf8" });
  const aptCalls = existsSync(calls) ? readFileSync(calls, "utf8").trim().split("\n") : [];
  return { status, output: stdout + stderr, aptCalls };
}

const RECORD = 'echo "$DEBIAN_FRONTEND $*" >>"$CALLS"';

it("is silent and asks nobody when nothing is missing", () => {
  stub("apt-get", RECORD);
  expect(setUp("sh:dash", "cat:coreutils")).toEqual({ status: 0, output: "", aptCalls: [] });
});

it("updates, then installs what is missing and nothing else, as root", () => {
  stub("id", "echo 0");
  stub("apt-get", RECORD);
  const { status, output, aptCalls } = setUp("sh:dash", "turnout-no-tool:one", "turnout-no-other:two");
  expect({ status, output }).toEqual({ status: 0, output: "turnout: installing one two with apt-get\n" });
  expect(aptCalls).toEqual([
    "noninteractive -qq -o DPkg::Lock::Timeout=300 update",
    "noninteractive -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends one two",
  ]);
});

it("takes a path for a file that must be there", () => {
  stub("id", "echo 0");
  stub("apt-get", RECORD);
  expect(setUp("/proc/version:one", `${bin}/none.h:two`).output).toBe("turnout: installing two with apt-get\n");
});

it("wants a package that is built for one machine on that machine only", () => {
  stub("id", "echo 0");
  stub("uname", "echo riscv64");
  stub("apt-get", RECORD);
  const { output } = setUp("turnout-no-tool:one:riscv64", "turnout-no-other:two:x86_64");
  expect(output).toBe("turnout: installing one with apt-get\n");
});

it("lets a package that there isn't keep no other away", () => {
  stub("id", "echo 0");
  stub("apt-get", `${RECORD}; case "$*" in *two*) echo "E: no such package"; exit 100;; esac`);
  const { status, output, aptCalls } = setUp("turnout-no-tool:one", "turnout-no-other:two", "turnout-no-third:three");
  expect(status).toBe(0);
  expect(aptCalls.slice(2).map((call) => call.replace(/.*recommends /, ""))).toEqual(["one", "two", "three"]);
  expect(output).toContain("run: apt-get update && apt-get install -y --no-install-recommends two\n");
});

it("prints the command and goes on for anyone else", () => {
  stub("id", "echo 1000");
  stub("apt-get", RECORD);
  const { status, output, aptCalls } = setUp("turnout-no-tool:one");
  expect({ status, aptCalls }).toEqual({ status: 0, aptCalls: [] });
  expect(output).toContain("sudo apt-get update && sudo apt-get install -y --no-install-recommends one\n");
});

it("shows why an install failed, prints the command and goes on", () => {
  stub("id", "echo 0");
  stub("apt-get", 'case "$*" in *install*) echo "E: no such package"; exit 100;; *) exit 1;; esac');
  const { status, output } = setUp("turnout-no-tool:one");
  expect(status).toBe(0);
  expect(output).toContain("E: no such package\n");
  expect(output).toContain("run: apt-get update && apt-get install -y --no-install-recommends one\n");
});
