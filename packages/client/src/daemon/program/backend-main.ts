import { readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import type { BackendModule, KernelObject } from "@turnout/core";
import { terminationSignal } from "../../process/signals.ts";
import type { ProcessRights } from "../host/give-up-rights.ts";
import { createProcessMemory } from "../host/process-memory.ts";
import { hostFiles } from "../host/host-files.ts";
import { exitPrinted, guardOutput } from "../../process/standard-output.ts";
import { runBackendProgram, type ProgramEnvironment } from "./backend-program.ts";

/** What a backend's own program says of itself. */
export interface BackendMainOptions {
  readonly version: string;
  /** `createWorld` of `@turnout/host`, or one's own. */
  readonly createWorld: ProgramEnvironment["createWorld"];
  /** `createProcessRights` of `@turnout/host`; absent: the process keeps all its capabilities. */
  readonly createProcessRights?: () => ProcessRights;
  /** `trimMemory` of `@turnout/host`; absent: what malloc holds free stays with the process. */
  readonly trimMemory?: () => void;
  /** Default `turnout-` and the backend's name. */
  readonly name?: string;
}

/**
 * Be a backend's own program: read this process's arguments, follow a node-state server until told to stop, and exit.
 *
 * Shape: the whole of a program is its imports and this call; see the README.
 */
export async function backendMain<H, K extends KernelObject, S>(
  module: BackendModule<unknown, H, K, S>,
  { version, createWorld, createProcessRights, trimMemory, name = `turnout-${module.name}` }: BackendMainOptions,
): Promise<void> {
  guardOutput(name);
  const code = await runBackendProgram(module, process.argv.slice(2), {
    name,
    version,
    createWorld,
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stderr.isTTY,
    hostname: hostname(),
    signal: terminationSignal({ on: (event, listener) => process.on(event, listener), exit: (status) => process.exit(status) }),
    nowMs: () => Date.now(),
    ...(process.platform === "linux"
      ? {
          host: {
            files: hostFiles,
            memory: createProcessMemory(trimMemory),
            ...(createProcessRights === undefined ? {} : { rights: createProcessRights() }),
          },
        }
      : {}),
    readFile: (path) => readFile(path, "utf8"),
    writeFile: (path, text) => writeFile(path, text),
  });
  await exitPrinted(code);
}
