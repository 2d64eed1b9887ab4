import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { callLines } from "./lines.ts";
import { AGENT_CALLS } from "./protocol.ts";
import type { AgentCalls } from "./protocol.ts";

/** A process acting inside one namespace. */
export interface Agent extends AgentCalls {
  readonly pid: number | undefined;
  /** End it, and with it all it serves and holds. */
  close(): void;
}

/** The arguments after `node` that start a program of this package, e.g. `agent/main`: its source in a checkout, the build when installed. */
function programArguments(base: string): readonly string[] {
  const isSource = import.meta.url.endsWith(".ts");
  const file = fileURLToPath(new URL(`../${base}.${isSource ? "ts" : "js"}`, import.meta.url));
  return isSource ? ["--conditions=@turnout/source", file] : [file];
}

/** Start a program of this package by `start`, which gives it pipes, and call it by the names of its functions. `name` is for error messages. */
export function callProgram<T extends object>(
  start: (file: string, args: readonly string[], options: { readonly stdio: ["pipe", "pipe", "inherit"] }) => ChildProcess,
  base: string,
  names: readonly (keyof T & string)[],
  name: string,
  args: readonly string[] = [],
): T & Pick<Agent, "pid" | "close"> {
  // stderr is the caller's: a program writes there only when it breaks.
  const child = start(process.execPath, [...programArguments(base), ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("an agent needs pipes");
  const lines = callLines(name, stdout, stdin);
  child.on("error", (error) => lines.end(error.message));
  child.on("exit", (code, signal) => lines.end(`it exited (${signal ?? code})`));
  const calls = Object.fromEntries(names.map((call) => [call, (argument: unknown) => lines.ask(call, argument)]));
  return {
    ...(calls as T),
    pid: child.pid,
    close: () => {
      lines.end("it was closed");
      child.kill("SIGKILL");
    },
  };
}

/** Start an agent on this host itself, in no namespace of its own: it needs no rights. `name` is for error messages. */
export function createLocalAgent(name: string): Agent {
  return callProgram<AgentCalls>(spawn, "agent/main", AGENT_CALLS, name);
}
