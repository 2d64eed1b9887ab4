import { readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import type { Log, World } from "@turnout/core";
import { terminationSignal } from "../../process/signals.ts";
import type { HostAccess, ProcessRights } from "../host/give-up-rights.ts";
import { hostFiles } from "../host/host-files.ts";
import { createProcessMemory } from "../host/process-memory.ts";

/** What a program touches besides its arguments; tests pass their own. */
export interface ProgramEnvironment {
  /** Standard output: what was asked for. */
  readonly out: (text: string) => void;
  /** Standard error: logs and errors. */
  readonly err: (text: string) => void;
  /** Standard error is a terminal, so logs are for people. */
  readonly isTerminal: boolean;
  readonly hostname: string;
  /** As `process.platform`. */
  readonly platform: string;
  readonly version: string;
  /** Aborts on SIGTERM, SIGINT and SIGHUP: ends the program, and rules stay in force. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** @throws what node:fs throws. */
  readonly readFile: (path: string) => Promise<string>;
  /** @throws what node:fs throws. */
  readonly writeFile: (path: string, text: string) => Promise<void>;
  /** Undefined: settings of the host and rights of this process stay as they are. */
  readonly host?: Omit<HostAccess, "paths">;
  readonly createWorld: (log: Log) => World;
}

/** What a program says of itself, and has from `@turnout/host`. */
export interface ProgramParts {
  readonly version: string;
  /** `createWorld` of `@turnout/host`, or one's own. */
  readonly createWorld: (options: { readonly log: Log }) => World;
  /** `createProcessRights` of `@turnout/host`; absent: the process keeps all its capabilities. */
  readonly createProcessRights?: () => ProcessRights;
  /** `trimMemory` of `@turnout/host`; absent: what malloc holds free stays with the process. */
  readonly trimMemory?: () => void;
}

/** The environment that this process is. Reading it begins to hear signals. */
export function processEnvironment({ version, createWorld, createProcessRights, trimMemory }: ProgramParts): ProgramEnvironment {
  const memory = createProcessMemory(trimMemory);
  const host = { files: hostFiles, memory, ...(createProcessRights === undefined ? {} : { rights: createProcessRights() }) };
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stderr.isTTY,
    hostname: hostname(),
    platform: process.platform,
    version,
    signal: terminationSignal({ on: (event, listener) => process.on(event, listener), exit: (status) => process.exit(status) }),
    nowMs: () => Date.now(),
    readFile: (path) => readFile(path, "utf8"),
    writeFile: (path, text) => writeFile(path, text),
    ...(process.platform === "linux" ? { host } : {}),
    createWorld: (log) => createWorld({ log }),
  };
}
