import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProxyError } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { createExec } from "./exec.ts";
import { installHint, TOOL_PACKAGES } from "./tool-packages.ts";

const exec = createExec();

function sh(script: string): [string, readonly string[]] {
  return ["sh", ["-c", script]];
}

async function failure(promise: Promise<unknown>): Promise<ProxyError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!ProxyError.is(error)) throw new Error("not refused with a ProxyError", { cause: error });
  return error;
}

/** Whether a process is still there, as anything at all: a zombie counts. */
function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe("run", () => {
  it("gives code, stdout and stderr", async () => {
    expect(await exec.run(...sh("echo out; echo err >&2; exit 3"))).toEqual({ code: 3, stdout: "out\n", stderr: "err\n" });
  });

  it("passes arguments as they are, without a shell", async () => {
    expect((await exec.run("printf", ["%s|", "a b", "$HOME", "; id"])).stdout).toBe("a b|$HOME|; id|");
  });

  it("passes a megabyte of input, and gives it back", async () => {
    const input = "π".repeat(500_000);
    expect((await exec.run("cat", [], { input })).stdout === input).toBe(true);
  });

  it("runs in the C locale", async () => {
    expect((await exec.run(...sh("echo $LC_ALL"))).stdout).toBe("C\n");
  });

  it("survives a child that does not read its input", async () => {
    const { code } = await exec.run("true", [], { input: "x".repeat(1_000_000) });
    expect(code).toBe(0);
  });

  it.each([
    ["SIGTERM", 143, "Error: sh was ended by SIGTERM: another program sent it\n"],
    ["SIGKILL", 137, "Error: sh was ended by SIGKILL: another program or the kernel, which may lack memory (see dmesg) sent it\n"],
    ["SIGSEGV", 139, "Error: sh crashed (SIGSEGV): install a newer version of it\n"],
    ["SIGABRT", 134, "Error: sh crashed (SIGABRT): install a newer version of it\n"],
  ])("gives 128 + signal for a child that %s ended, and says so", async (signal, code, stderr) => {
    expect(await exec.run(...sh(`kill -${signal.slice(3)} $$`))).toEqual({ code, stdout: "", stderr, signal });
  });

  it("keeps the end of a long stderr", async () => {
    const { stderr } = await exec.run(...sh("yes complaint | head -c 5000000 >&2; echo last >&2"));
    expect(stderr.length).toBeLessThanOrEqual(1 << 20);
    expect(stderr.endsWith("last\n")).toBe(true);
  });

  it("says which package holds a missing tool", async () => {
    const error = await failure(exec.run("/nonexistent/nft", ["list"]));
    expect(error.code).toBe("tool_missing");
    expect(error.hint).toBe("install it: apt-get install nftables; in a container, use the image with all backends");
  });

  it("says when a file may not be run", async () => {
    const directory = mkdtempSync(join(tmpdir(), "turnout-exec-"));
    try {
      writeFileSync(join(directory, "plain"), "no program", { mode: 0o644 });
      expect((await failure(exec.run(join(directory, "plain"), []))).code).toBe("permission_denied");
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it("refuses an argument no program can get", async () => {
    expect((await failure(exec.run("echo", ["a\0b"]))).code).toBe("tool_failed");
  });

  // The grandchild would hold the pipes for an hour.
  it("kills on timeout, and does not wait for who holds the pipes", async () => {
    const error = await failure(exec.run(...sh("echo why >&2; sleep 3600 & wait"), { timeoutMs: 200 }));
    expect(error.code).toBe("timed_out");
    expect(error.cause).toMatchObject({ message: "why\n" });
  });

  it("kills on abort, and does not even start after it", async () => {
    const aborting = new AbortController();
    const running = failure(exec.run("sleep", ["3600"], { signal: aborting.signal }));
    aborting.abort(new Error("enough"));
    expect((await running).code).toBe("canceled");
    expect((await failure(exec.run("/nonexistent/tool", [], { signal: aborting.signal }))).code).toBe("canceled");
  });

  it("fails above the limit of output", async () => {
    expect((await failure(exec.run("yes", [], { maxOutputBytes: 100_000 }))).code).toBe("tool_failed");
    expect((await exec.run("printf", ["12345"], { maxOutputBytes: 5 })).stdout).toBe("12345");
  });
});

describe("open", () => {
  it("starts at once, and gives what it leaves when its input has come", async () => {
    const started = exec.open(...sh("echo early >&2; cat; exit 3"));
    if (started.pid === undefined) throw new Error("not started");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isThere(started.pid)).toBe(true);
    expect(await started.finish("π and more")).toEqual({ code: 3, stdout: "π and more", stderr: "early\n" });
  });

  it("shows a failed start when it is asked, and not before", async () => {
    const started = exec.open("/nonexistent/ipset", []);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await failure(started.finish("x"))).code).toBe("tool_missing");
    expect((await failure(exec.open("sh", ["\0"]).finish("x"))).code).toBe("tool_failed");
  });

  it("tells how a child ended that died before its input came", async () => {
    const started = exec.open(...sh("echo 'out of memory' >&2; exit 7"));
    await until(() => started.pid === undefined || !isThere(started.pid));
    const { code, stderr } = await started.finish("x".repeat(1_000_000));
    expect([code, stderr]).toEqual([7, expect.stringContaining("out of memory")]);
  });

  it("kills what is given up: by its time, by a signal that aborts, and by one that has", async () => {
    const script = sh("trap '' TERM; cat >/dev/null; sleep 3600");
    expect((await failure(exec.open(...script).finish("", { timeoutMs: 50 }))).code).toBe("timed_out");
    const aborting = new AbortController();
    const running = failure(exec.open(...script).finish("", { signal: aborting.signal }));
    aborting.abort(new Error("enough"));
    expect((await running).code).toBe("canceled");
    expect((await failure(exec.open(...script).finish("", { signal: aborting.signal }))).code).toBe("canceled");
  });

  it("leaves no process and no zombie when closed, and rejects who waits", async () => {
    const started = exec.open(...sh("trap '' TERM HUP INT; while :; do sleep 0.05; done"));
    const { pid } = started;
    if (pid === undefined) throw new Error("not started");
    const waiting = failure(started.finish("x"));
    started.close();
    started.close();
    expect((await waiting).code).toBe("canceled");
    await until(() => !isThere(pid));
  });
});

describe("installHint", () => {
  it.each([
    ["nft", "install it: apt-get install nftables; in a container, use the image with all backends"],
    ["/usr/sbin/ip6tables-restore", "install it: apt-get install iptables; in a container, use the image with all backends"],
    ["constructor", "install constructor or put it on PATH"],
    ["frobnicate", "install frobnicate or put it on PATH"],
  ])("%s", (file, hint) => expect(installHint(file)).toBe(hint));

  it("knows no tool by path and no empty package", () => {
    for (const [tool, name] of Object.entries(TOOL_PACKAGES)) expect([tool, name].every((text) => /^[a-z0-9-]+$/.test(text))).toBe(true);
  });
});
