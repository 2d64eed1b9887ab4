import { inspect } from "node:util";
import { ProxyError } from "@turnout/core";
import { Command, CommanderError } from "commander";
import type { ProgramEnvironment } from "./environment.ts";
import { keepTyped } from "./options.ts";

const FAILED = 1;
const BAD_USAGE = 2;

/** Options that take the next word for their value, though they can do without one. */
const TAKES_NEXT = "--verbose";

/** Make a program's command, which prints to its environment. */
export function createCommand(name: string, { out, err }: Pick<ProgramEnvironment, "out" | "err">): Command {
  return new Command(name).exitOverride().configureOutput({ writeOut: out, writeErr: err, outputError: () => undefined });
}

/**
 * Run one command line of a program, or of its command that the first word names.
 *
 * Shape: `args` without node and script; resolves to the exit code: 0 done, 1 failed, 2 bad usage or configuration.
 * Edges: an operating error is one line on standard error, with cause and stack under -v; a programmer's error shows its stack always.
 */
export async function runCommandLine(program: Command, args: readonly string[], env: Pick<ProgramEnvironment, "err">): Promise<number> {
  const name = program.name();
  const command = program.commands.find((one) => one.name() === args[0]) ?? program;
  for (const one of [program, ...program.commands]) keepTyped(one);
  try {
    await program.parseAsync(argumentsOf(command, args), { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return usageCode(error, name, command === program ? name : `${name} ${args[0]}`, env);
    env.err(errorText(name, error, wantsStacks(args)));
    return ProxyError.is(error, "invalid_object") ? BAD_USAGE : FAILED;
  }
}

/** Tell whether -v was given, alone or with a level: one that is none is a mistake, and a mistake is one line. */
function wantsStacks(args: readonly string[]): boolean {
  return args.some((arg, index) => {
    const [, level] = /^(?:-v|--v|--verbose)(?:=?(\d+))?$/.exec(arg) ?? [undefined, ""];
    return level === undefined ? /^(?:-.*|\d+)?$/s.test(args[index + 1] ?? "") : level !== "";
  });
}

/**
 * Write a command line as commander reads it: underscores in a flag's name are dashes, and a switch that stands alone is on, whatever comes next,
 * as kube-proxy has both; commander would take the next word for its value. Pure.
 * @source component-base cli/flag WordSepNormalizeFunc
 */
export function argumentsOf(command: Command, args: readonly string[]): readonly string[] {
  const switches = new Set(
    command.options.flatMap(({ optional, long }) => (optional && typeof long === "string" && long !== TAKES_NEXT ? [long] : [])),
  );
  return args
    .map((arg) => arg.replace(/^--[^=]+/, (name) => name.replaceAll("_", "-")))
    .map((arg) => (switches.has(arg) ? `${arg}=true` : arg));
}

/** Help and version are no errors; everything else commander says is bad usage. */
function usageCode(error: CommanderError, name: string, helped: string, env: Pick<ProgramEnvironment, "err">): number {
  if (error.exitCode === 0) return 0;
  // Help shown because no command was given: commander has written it already.
  if (error.code !== "commander.help")
    env.err(`${name}: ${error.message.replace(/^error: |\.$/g, "").replaceAll("\n", " ")}: see ${helped} --help\n`);
  return BAD_USAGE;
}

/** Write an error of a program as it is shown: one line, or everything. */
export function errorText(name: string, error: unknown, isVerbose: boolean): string {
  if (!ProxyError.is(error)) return `${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
  if (!isVerbose) return `${name}: ${error.message}\n`;
  return `${name}: ${error.message}\n${stackChain(error)}`;
}

function stackChain(error: Error): string {
  const stack = error.stack ?? "";
  if (error.cause === undefined) return `${stack}\n`;
  return `${stack}\ncaused by: ${error.cause instanceof Error ? stackChain(error.cause) : `${inspect(error.cause)}\n`}`;
}
