import { inspect } from "node:util";
import { ProxyError } from "@turnout/core";
import { Command, CommanderError } from "commander";
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
import { keepTyped } from "./options.ts";
import { KNOWN_BACKENDS } from "./registry.ts";

const FAILED = 1;
const BAD_USAGE = 2;

function backendsHelp(): string {
  const lines = KNOWN_BACKENDS.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`);
  return `\nBackends:\n${lines.join("\n")}\n  Any npm package or path that exports a backend module works too.\n\nExit codes: 0 done, 1 failed, 2 bad usage or configuration.`;
}

/** Put the whole command together. `onFinding` hears of a command that did its work and found something wrong. */
export function createProgram(env: Environment, onFinding: () => void = ignore): Command {
  const program = new Command("turnout")
    .description("A pluggable kube-proxy: turns Kubernetes Services into what a node's kernel does with packets.")
    .version(env.version, "-V, --version")
    .addHelpText("after", backendsHelp())
    .exitOverride()
    .configureOutput({ writeOut: env.out, writeErr: env.err, outputError: () => undefined });
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
  for (const command of program.commands) keepTyped(command);
  return program;
}

/**
 * Run one command line.
 *
 * Shape: `args` without node and script; resolves to the exit code: 0 done, 1 failed, 2 bad usage or configuration.
 * Edges: an operating error is one line on standard error, with cause and stack under -v; a programmer's error shows its stack always.
 */
export async function runProgram(args: readonly string[], env: Environment): Promise<number> {
  let code = 0;
  const program = createProgram(env, () => void (code = FAILED));
  try {
    await program.parseAsync(standalone(program, args.map(dashed)), { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return usageCode(error, helpOf(program, args), env);
    env.err(errorText(error, wantsStacks(args)));
    return ProxyError.is(error, "invalid_object") ? BAD_USAGE : FAILED;
  }
}

function ignore(): void {
  // Nobody asks for an exit code.
}

/** Tell whether -v was given, alone or with a level: one that is none is a mistake, and a mistake is one line. */
function wantsStacks(args: readonly string[]): boolean {
  return args.some((arg, index) => {
    const [, level] = /^(?:-v|--v|--verbose)(?:=?(\d+))?$/.exec(arg) ?? [undefined, ""];
    return level === undefined ? /^(?:-.*|\d+)?$/s.test(args[index + 1] ?? "") : level !== "";
  });
}

/** Underscores in a flag's name are dashes, as kube-proxy has it. @source component-base cli/flag WordSepNormalizeFunc */
function dashed(arg: string): string {
  return arg.replace(/^--[^=]+/, (name) => name.replaceAll("_", "-"));
}

/** Options that take the next word for their value, though they can do without one. */
const TAKES_NEXT = "--verbose";

/** A switch that stands alone is on, whatever comes next, as in kube-proxy: commander would take the next word for its value. */
function standalone(program: Command, args: readonly string[]): readonly string[] {
  const command = program.commands.find((one) => one.name() === args[0]);
  const switches = new Set(
    command?.options.flatMap(({ optional, long }) => (optional && typeof long === "string" && long !== TAKES_NEXT ? [long] : [])),
  );
  return args.map((arg) => (switches.has(arg) ? `${arg}=true` : arg));
}

/** The help that fits what was typed. */
function helpOf(program: Command, args: readonly string[]): string {
  const [first] = args;
  const isCommand = program.commands.some((command) => command.name() === first);
  return isCommand ? `turnout ${first} --help` : "turnout --help";
}

/** Help and version are no errors; everything else commander says is bad usage. */
function usageCode(error: CommanderError, help: string, env: Environment): number {
  if (error.exitCode === 0) return 0;
  // Help shown because no command was given: commander has written it already.
  if (error.code !== "commander.help")
    env.err(`turnout: ${error.message.replace(/^error: |\.$/g, "").replaceAll("\n", " ")}: see ${help}\n`);
  return BAD_USAGE;
}

/** Write an error as it is shown: one line, or everything. */
export function errorText(error: unknown, isVerbose: boolean): string {
  if (!ProxyError.is(error)) return `turnout: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
  if (!isVerbose) return `turnout: ${error.message}\n`;
  return `turnout: ${error.message}\n${stackChain(error)}`;
}

function stackChain(error: Error): string {
  const stack = error.stack ?? "";
  if (error.cause === undefined) return `${stack}\n`;
  return `${stack}\ncaused by: ${error.cause instanceof Error ? stackChain(error.cause) : `${inspect(error.cause)}\n`}`;
}
