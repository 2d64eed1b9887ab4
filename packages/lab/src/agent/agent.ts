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

/**
 * The arguments after `node` that start a program of this package: its source in a checkout, the build when installed.
 * @param base - name without extension, relative to this folder's parent, e.g. `agent/main`.
 */
export function programArguments(base: string): readonly string[] {
  const isSource = import.meta.url.endsWith(".ts");
  const file = fileURLToPath(new URL(`../${base}.${isSource ? "ts" : "js"}`, import.meta.url));
  return isSource ? ["--conditions=@turnout/source", file] : [file];
}

/** Speak to a started agent process (its stdin and stdout are pipes). `name` is for error messages. */
export function agentOver(child: ChildProcess, name: string): Agent {
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("an agent needs pipes");
  const lines = callLines(name, stdout, stdin);
  child.on("error", (error) => lines.end(error.message));
  child.on("exit", (code, signal) => lines.end(`it exited (${signal ?? code})`));
  const calls = Object.fromEntries(AGENT_CALLS.map((call) => [call, (argument: unknown) => lines.ask(call, argument)]));
  return {
    ...(calls as unknown as AgentCalls),
    pid: child.pid,
    close: () => {
      lines.end("it was closed");
      child.kill("SIGKILL");
    },
  };
}
