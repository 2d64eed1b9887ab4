import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { needs } from "./needs.ts";

const SCRIPT = fileURLToPath(new URL("build-bpf.sh", import.meta.url));
const SOURCE = '#include "answer.h"\nint answer(void *ctx) { return ANSWER; }\n';
let root = "";

/** A checkout with one program, in a folder of a package. */
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "turnout-build-bpf-"));
  mkdirSync(join(root, "scripts"));
  mkdirSync(join(root, "packages/one/src/programs"), { recursive: true });
  mkdirSync(join(root, "packages/none"));
  cpSync(SCRIPT, join(root, "scripts/build-bpf.sh"));
  write("answer.bpf.c", SOURCE);
  write("answer.h", "#define ANSWER 42\n");
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** Write a file of the program, as if a while ago, so that what is built is later. */
function write(name: string, text: string, ageSeconds = 100): void {
  const path = join(root, "packages/one/src/programs", name);
  writeFileSync(path, text);
  const then = Date.now() / 1000 - ageSeconds;
  for (const one of [path, join(root, "scripts/build-bpf.sh")]) utimesSync(one, then, then);
}

function build(path = process.env["PATH"] ?? "", ...args: readonly string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync("/bin/sh", [join(root, "scripts/build-bpf.sh"), ...args], {
    encoding: "utf8",
    env: { PATH: path },
  });
  return { status, output: stdout + stderr };
}

function objects(): readonly string[] {
  return readdirSync(join(root, "packages/one"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.startsWith("dist/") && statSync(join(root, "packages/one", name)).isFile())
    .toSorted();
}

function age(): number {
  return statSync(join(root, "packages/one/dist/programs/answer.bpf.o")).mtimeMs;
}

describe("building BPF programs", needs("bpf"), () => {
  it("compiles what is new, for BPF, with its types and without paths of this machine", () => {
    expect(build()).toEqual({ status: 0, output: "" });
    expect(objects()).toEqual(["dist/programs/answer.bpf.o"]);
    const object = readFileSync(join(root, "packages/one/dist/programs/answer.bpf.o"));
    // ELF, little-endian, machine EM_BPF
    expect([object.toString("latin1", 1, 4), object[5], object.readUInt16LE(18)]).toEqual(["ELF", 1, 247]);
    expect([object.includes(".BTF"), object.includes(".debug_info"), object.includes(root)]).toEqual([true, false, false]);
  });

  it("leaves alone what is built, and compiles again when a header beside it is newer", () => {
    build();
    const first = age();
    expect([build().status, age()]).toEqual([0, first]);
    write("answer.h", "#define ANSWER 43\n", -100);
    expect([build().status, age() > first]).toEqual([0, true]);
  });

  it("fails with what clang says, and leaves no object", () => {
    write("answer.h", "\n");
    const { status, output } = build();
    expect([status === 0, objects()]).toEqual([false, []]);
    expect(output).toContain("packages/one/src/programs/answer.bpf.c:2:");
    expect(output).toContain("ANSWER");
  });
});

it("says the command where there is no compiler, and goes on, or fails where objects are required", () => {
  const bin = join(root, "bin");
  mkdirSync(bin);
  // All that the script calls, but clang.
  for (const tool of ["dirname", "find", "uname"])
    writeFileSync(join(bin, tool), `#!/bin/sh\nexec "$(PATH=/usr/bin:/bin command -v ${tool})" "$@"\n`, { mode: 0o755 });
  const hint =
    "turnout: BPF programs are not built; run: apt-get install -y --no-install-recommends clang llvm libbpf-dev, then npm run build\n";
  expect(build(bin)).toEqual({ status: 0, output: hint });
  expect(build(bin, "--required", "packages/one")).toEqual({ status: 1, output: hint });
  expect(objects()).toEqual([]);
});
