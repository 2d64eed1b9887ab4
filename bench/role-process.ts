import { spawn } from "node:child_process";
import type { ChildProcess, ChildProcessByStdio } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { launcherFlags } from "@turnout/house/shell-word";
import { IPVS_MODULES, nodeCommand, runInVm } from "@turnout/house/vm";
import type { Place } from "@turnout/lab";
import { lineReader, parseMessage } from "./line-channel.ts";
import type { Message } from "./line-channel.ts";

/** How a role is run. */
export interface RoleOptions {
  /** A network namespace of its own (default), the caller's, or that of a process. */
  readonly namespace?: "fresh" | "same" | { readonly pid: number };
  /** A place of the laboratory, instead of such a namespace. */
  readonly place?: Pick<Place, "spawn">;
  /** Pin it to this CPU. */
  readonly cpu?: number;
}

/** A role that runs. */
export interface RoleProcess {
  /** Its next phase or its result. @throws {Error} when it failed or died. */
  next(): Promise<Exclude<Message, { readonly kind: "failed" }>>;
  /** Wait for its next phase; resolves to the process to watch. @throws {Error} when it has another name. */
  phase(name: string): Promise<number>;
  /** Let it leave the phase it has reached. */
  go(): void;
  /** End it, whatever it does. */
  kill(): void;
  /** How it ended; after its result it does so by itself. */
  readonly ended: Promise<string>;
}

/** The command as it is installed: built, not run from source. */
export const TURNOUT: string = fileURLToPath(new URL("../packages/cli/bin/turnout", import.meta.url));
/** What starts it: its flags of Node are here. */
const LAUNCHER = fileURLToPath(new URL("../packages/client/launcher.sh", import.meta.url));
const VM_MEMORY_MIB = 2_048;
const VM_TIMEOUT_MS = 1_800_000;
const MAIN = fileURLToPath(new URL("role-main.ts", import.meta.url));

/** The command line that runs a program in a namespace; unshare, nsenter and taskset become it, so the pid is its own. Pure. */
export function placedCommand(program: readonly string[], { namespace = "fresh", cpu }: RoleOptions): readonly string[] {
  const pinned = cpu === undefined ? program : ["taskset", "--cpu-list", String(cpu), ...program];
  if (namespace === "same") return pinned;
  return namespace === "fresh" ? ["unshare", "--net", ...pinned] : ["nsenter", `--net=/proc/${namespace.pid}/ns/net`, ...pinned];
}

/** Start a role in a process of its own. */
export function openRole(role: string, parameters: unknown, options: RoleOptions = {}): RoleProcess {
  const { place } = options;
  const flags = [...process.execArgv.filter((flag) => !flag.startsWith("--max-")), ...launcherFlags(readFileSync(LAUNCHER, "utf8"))];
  const node = [process.execPath, ...flags, MAIN, role, JSON.stringify(parameters)];
  const [file = "", ...args] = placedCommand(node, place === undefined ? options : { ...options, namespace: "same" });
  const start = place?.spawn ?? ((...command: Parameters<Place["spawn"]>): ChildProcess => spawn(command[0], command[1], command[2] ?? {}));
  const child = start(file, args, { stdio: ["pipe", "pipe", "inherit"] }) as ChildProcessByStdio<Writable, Readable, null>;
  const ended = endOf(child);
  // A role that dies while it is told to go on: its end is reported by next().
  child.stdin.on("error", () => undefined);
  const lines = lineReader(child.stdout);
  const next: RoleProcess["next"] = async () => {
    for (let line = await lines.next(); line !== undefined; line = await lines.next()) {
      const message = parseMessage(line);
      if (message?.kind === "failed") throw new Error(`role ${role} failed: ${message.text}`);
      if (message !== undefined) return message;
      process.stderr.write(`${role}: ${line}\n`);
    }
    throw new Error(`role ${role} ended without a result: ${await ended}`);
  };
  return {
    next,
    phase: async (name) => {
      const message = await next();
      if (message.kind !== "phase" || message.name !== name) throw new Error(`role ${role} should have reached ${name}`);
      return message.pid;
    },
    go: () => void child.stdin.write("go\n"),
    kill: () => void child.kill("SIGKILL"),
    ended,
  };
}

/**
 * Run a role to its end and give back its result; at each phase it goes on when `onPhase` resolves.
 * @throws {Error} when it fails, dies or ends without a result.
 */
export async function runRole<T>(
  role: string,
  parameters: unknown,
  options: RoleOptions & { readonly onPhase?: (name: string, pid: number) => Promise<void> } = {},
): Promise<T> {
  const running = openRole(role, parameters, options);
  try {
    for (;;) {
      const message = await running.next();
      if (message.kind === "result") {
        await running.ended;
        return message.value as T;
      }
      await options.onPhase?.(message.name, message.pid);
      running.go();
    }
  } finally {
    running.kill();
  }
}

/**
 * Run a role to its end in a guest, which has IPVS, and give back its result. It has no phases.
 * @throws {Error} when it fails or ends without a result.
 */
export async function runVmRole<T>(role: string, parameters: unknown): Promise<T> {
  const command = nodeCommand(MAIN, [role, JSON.stringify(parameters)]);
  const { stdout, stderr } = await runInVm({ command, modules: IPVS_MODULES, memoryMiB: VM_MEMORY_MIB, timeoutMs: VM_TIMEOUT_MS });
  for (const line of stdout.split("\n")) {
    const message = parseMessage(line);
    if (message?.kind === "failed") throw new Error(`role ${role} failed: ${message.text}`);
    if (message?.kind === "result") return message.value as T;
  }
  throw new Error(`role ${role} ended without a result: ${stderr.slice(-1_000)}`);
}

/** Wait for the result of a role that has no phase before it. @throws {Error} when it reaches one. */
export async function resultOf<T>(role: RoleProcess): Promise<T> {
  const message = await role.next();
  if (message.kind !== "result") throw new Error(`a role should have ended, and reached ${message.name}`);
  await role.ended;
  return message.value as T;
}

/** Resolves to how a child ended. */
export function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, killedBy) => resolve(killedBy ?? `exit code ${code ?? "unknown"}`));
  });
}
