import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ProgramFile } from "../hooks.ts";

const PROGRAMS = fileURLToPath(new URL("../programs", import.meta.url));

/** Compile programs in a folder of their own; gives the object file. @throws what clang says. */
export function compilePrograms(folder: string, program: ProgramFile = "sockets"): string {
  const objectFile = join(folder, `${program}.bpf.o`);
  const machine = `/usr/include/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`;
  const flags = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", ...(existsSync(machine) ? [`-I${machine}`] : [])];
  execFileSync("clang", [...flags, "-c", join(folder, `${program}.bpf.c`), "-o", objectFile], { stdio: ["ignore", "ignore", "pipe"] });
  return objectFile;
}

/** With what the names of folders begin in which this process has copies of the programs. */
export const COPY_PREFIX: string = `turnout-ebpf-programs-${process.pid}-`;

/** Copy the programs into a new folder below `parent`. */
export function copyPrograms(parent: string): string {
  const folder = mkdtempSync(join(parent, COPY_PREFIX));
  cpSync(PROGRAMS, folder, { recursive: true });
  return folder;
}

/** How another version of Turnout may have the programs: they try more often; or so that the verifier refuses them. */
const CHANGES = {
  other: ["choose.h", "#define ATTEMPTS 3", "#define ATTEMPTS 4"],
  refused: ["choose.h", "  if (!one)\n    return false;\n", ""],
} as const;

/** Compile another build of the programs. Gives the object file, in a folder below `parent`. */
export function otherBuild(parent: string, which: keyof typeof CHANGES = "other", program: ProgramFile = "sockets"): string {
  const folder = copyPrograms(parent);
  const [name, right, wrong] = CHANGES[which];
  const file = join(folder, name);
  const source = readFileSync(file, "utf8");
  if (source.split(right).length !== 2) throw new Error(`${name} has this once: ${right}`);
  writeFileSync(
    file,
    source.replace(right, () => wrong),
  );
  return compilePrograms(folder, program);
}
