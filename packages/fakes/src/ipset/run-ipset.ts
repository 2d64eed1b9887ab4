import type { ExecResult } from "@turnout/core";
import { readCommand } from "./commands.ts";
import type { CommandHost, Undo } from "./commands.ts";
import { IpsetRefusal } from "./refusal.ts";

const VERSION = "ipset v7.17";

/** Run the program once. */
export function runIpset(args: readonly string[], input: string, host: CommandHost): ExecResult {
  const words = args.filter((word) => word !== "-exist" && word !== "-!");
  const isLenient = words.length < args.length;
  const [verb = ""] = words;
  if (["version", "--version", "-v"].includes(verb)) return { code: 0, stdout: `${VERSION}, protocol version: 7\n`, stderr: "" };
  if (verb === "restore") return restore(input, host, isLenient);
  try {
    return { code: 0, stdout: readCommand(words, host, isLenient).run(host).printed, stderr: "" };
  } catch (error) {
    return complain(error, undefined, "");
  }
}

function complain(error: unknown, line: number | undefined, stdout: string): ExecResult {
  if (!(error instanceof IpsetRefusal)) throw error;
  const where = line === undefined || error.kind === "usage" ? "" : `Error in line ${line}: `;
  return { code: error.code, stdout, stderr: `${VERSION}: ${where}${error.message}\n` };
}

/**
 * Carry out the lines of an input.
 *
 * Entries for one set are collected and handed over together. So a line that the tool can't read takes with it what was collected before it, and
 * comes before a refusal by the kernel of what was collected.
 */
function restore(input: string, host: CommandHost, isLenient: boolean): ExecResult {
  let stdout = "";
  let group: string | undefined;
  let refused: { readonly error: unknown; readonly line: number } | undefined;
  const undos: Undo[] = [];
  for (const [index, text] of input.split("\n").entries()) {
    const words = wordsOf(text);
    if (words.length === 0 || words[0]?.startsWith("#") === true) continue;
    if (words[0] === "COMMIT" || words[0] === "quit") continue;
    try {
      const command = readCommand(words, host, isLenient);
      if (command.group === undefined || command.group !== group) {
        if (refused !== undefined) break;
        undos.length = 0;
        group = command.group;
      }
      if (refused !== undefined) continue;
      const { printed, undo } = command.run(host);
      stdout += printed;
      if (undo !== undefined) undos.push(undo);
    } catch (error) {
      if (error instanceof IpsetRefusal && error.kind === "kernel") {
        refused ??= { error, line: index + 1 };
        if (group === undefined) break;
        continue;
      }
      for (const undo of undos.toReversed()) undo();
      return complain(error, index + 1, stdout);
    }
  }
  return refused === undefined ? { code: 0, stdout, stderr: "" } : complain(refused.error, refused.line, stdout);
}

function wordsOf(line: string): readonly string[] {
  return (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => (word.startsWith('"') ? word.slice(1, -1) : word));
}
