import { readFileSync, statSync } from "node:fs";
import { hash } from "node:crypto";
import { ProxyError } from "@turnout/core/backend";
import { CONNTRACK_FUNCTIONS, KERNEL_FIELDS } from "./conntrack-functions.ts";
import { Cpu } from "./cpu.ts";
import type { Operation, RunSetting, Value } from "./cpu.ts";
import { requireAllReleased } from "./held.ts";
import { HELPERS } from "./helper-functions.ts";
import type { KernelMap } from "./kernel-maps.ts";
import { readObjectFile } from "./object-file.ts";
import type { ObjectFile, ProgramKind } from "./object-file.ts";
import type { RunAbout } from "./run-about.ts";
import { SKB_FIELDS, SKB_FUNCTIONS } from "./skb-functions.ts";
import { translate } from "./translate.ts";

/** An object file that is ready to run. */
export interface Code {
  readonly file: ObjectFile;
  readonly operations: readonly Operation[];
  readonly cpu: Cpu;
  /** A digest of the file. */
  readonly digest: string;
}

/** A program with its maps. */
export interface RunnableProgram {
  readonly code: Code;
  readonly entry: number;
  readonly kind: ProgramKind;
  /** By their numbers in the object file. */
  readonly maps: readonly KernelMap[];
}

/** Reading and translating take some ms, and there are thousands of hosts. By the path, and when the file was written. */
const known = new Map<string, Code>();

/**
 * Read and translate an object file.
 * @throws {ProxyError} `not_found` without the file, `invalid_object` when it is none, `host_unsupported` for what the kernel in memory doesn't have
 */
export function codeOf(path: string): Code {
  const key = `${path} ${statSync(path, { throwIfNoEntry: false })?.mtimeMs}`;
  let code = known.get(key);
  if (code === undefined) known.set(key, (code = makeCode(readObject(path), path)));
  return code;
}

function readObject(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw ProxyError.from(error, "not_found", "there is no such BPF object file", {
      object: path,
      hint: "it is compiled by: npm run build",
    });
  }
}

function makeCode(bytes: Buffer, path: string): Code {
  const digest = hash("sha256", bytes);
  const cpu = new Cpu();
  try {
    const file = readObjectFile(bytes, { ...KERNEL_FIELDS, ...SKB_FIELDS });
    const operations = translate(file.instructions, cpu, {
      helpers: HELPERS,
      kfuncs: { ...CONNTRACK_FUNCTIONS, ...SKB_FUNCTIONS },
    });
    return { file, operations, cpu, digest };
  } catch (error) {
    throw ProxyError.from(error, "invalid_object", "this file is no BPF object that the kernel in memory can run", { object: path });
  }
}

/** Run a program; gives what it returns. @throws {ProgramFault} */
export function runProgram({ code, entry, maps }: RunnableProgram, context: Value, about: RunAbout): number {
  const setting: RunSetting = { maps, context, about };
  const result = code.cpu.run(code.operations, entry, setting);
  requireAllReleased(setting);
  return result;
}
