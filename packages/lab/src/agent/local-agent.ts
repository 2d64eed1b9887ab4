import { spawn } from "node:child_process";
import { agentOver, programArguments } from "./agent.ts";
import type { Agent } from "./agent.ts";

/** Start an agent on this host itself, in no namespace of its own: it needs no rights. `name` is for error messages. */
export function createLocalAgent(name: string): Agent {
  const child = spawn(process.execPath, programArguments("agent/main"), { stdio: ["pipe", "pipe", "inherit"] });
  return agentOver(child, name);
}
