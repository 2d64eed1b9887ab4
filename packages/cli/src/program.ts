import { createCommand, runCommandLine } from "@turnout/client/daemon";
import type { Command } from "commander";
import { addCleanup } from "./commands/cleanup.ts";
import { addConformance } from "./commands/conformance.ts";
import { addDemo } from "./commands/demo.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addPrint } from "./commands/print.ts";
import { addRender } from "./commands/render.ts";
import { addRun } from "./commands/run.ts";
import { addServe } from "./commands/serve.ts";
import { addStatus } from "./commands/status.ts";
import { addVersion } from "./commands/version.ts";
import type { Environment } from "./environment.ts";
import { addWhy } from "./commands/why.ts";
import { KNOWN_BACKENDS } from "./registry.ts";

const FAILED = 1;

function backendsHelp(): string {
  const lines = KNOWN_BACKENDS.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`);
  return `\nBackends:\n${lines.join("\n")}\n  Any npm package or path that exports a backend module works too.\n\nExit codes: 0 done, 1 failed, 2 bad usage or configuration.`;
}

/** Put the whole command together. `onFinding` hears of a command that did its work and found something wrong. */
export function createProgram(env: Environment, onFinding: () => void = ignore): Command {
  const program = createCommand("turnout", env)
    .description("A pluggable kube-proxy: turns Kubernetes Services into what a node's kernel does with packets.")
    .version(env.version, "-V, --version")
    .addHelpText("after", backendsHelp());
  addRun(program, env);
  addServe(program, env);
  addStatus(program, env);
  addWhy(program, env, onFinding);
  addPrint(program, env);
  addRender(program, env);
  addCleanup(program, env);
  addDoctor(program, env, onFinding);
  addVersion(program, env);
  addConformance(program, env);
  addDemo(program, env);
  return program;
}

/** Run one command line, as {@link runCommandLine} does; 1 also for a command that found something wrong. */
export async function runProgram(args: readonly string[], env: Environment): Promise<number> {
  let found = 0;
  const program = createProgram(env, () => void (found = FAILED));
  return (await runCommandLine(program, args, env)) || found;
}

function ignore(): void {
  // Nobody asks for an exit code.
}
