import type { IPFamily } from "@turnout/core";
import type { IptablesVariant } from "@turnout/host/iptables";
import type { SetLookup } from "../host/set-lookup.ts";
import { parseArguments } from "./parse-arguments.ts";
import { CODES, Refusal } from "./refusal.ts";
import { RestoreReader } from "./restore.ts";
import { save } from "./save.ts";
import { isTableName, newTable } from "./tables.ts";
import type { RuleSet } from "./tables.ts";
import type { TableName } from "./table-names.ts";

/** What a program left, and the tables it handed to the kernel. */
export interface ToolResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly committed: readonly TableName[];
}

/** One of the programs: its variant and family, what it does, and the name it was called by. */
export interface Program {
  readonly variant: IptablesVariant;
  readonly family: IPFamily;
  readonly does: "change" | "restore" | "save";
  /** As it was called, e.g. `iptables-nft-restore`. */
  readonly name: string;
}

/** What a program finds on the host. */
export interface ProgramHost {
  readonly rules: RuleSet;
  readonly sets: SetLookup;
}

/** Run a program once. */
export function runProgram(program: Program, args: readonly string[], input: string, { rules, sets }: ProgramHost): ToolResult {
  const reader = new RestoreReader(rules, sets);
  const end = (code: number, stderr: string): ToolResult => ({ code, stdout: reader.printed, stderr, committed: reader.committed });
  try {
    if (program.does === "change") runChange(program, args, reader);
    else runOther(program, args, input, reader, rules);
    return end(0, "");
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const where = program.does === "restore" && reader.line > 0 ? `line ${reader.line} failed` : "";
    // Where it fails at a line, the legacy tool doesn't say why.
    const why = program.variant === "legacy" && where !== "" && error.kind === "command" ? "" : error.message;
    const text = error.kind === "kernel" ? (where === "" ? why.replace(/^line \d+: /, "") : why) : `${where}: ${why}`;
    return end(CODES[error.kind], `${program.name}: ${text}\n`);
  }
}

function versionText({ variant, family, does, name }: Program): string {
  const plain = family === "IPv4" ? "iptables" : "ip6tables";
  const called = does === "change" ? plain : variant === "nft" ? name : `${plain}-${does}`;
  return `${called} v1.8.9 (${variant === "nft" ? "nf_tables" : "legacy"})\n`;
}

function runChange(program: Program, words: readonly string[], reader: RestoreReader): void {
  const args = parseArguments(words, { family: program.family, isRestore: false, familyOfSet: reader.familyOfSet });
  if (args.verb === "V") reader.printed = versionText(program);
  else if (!isTableName(args.table)) {
    throw new Refusal("table", noTable(program));
  } else if (args.verb === "L") {
    // Its columns are for people; nothing here reads them.
    throw new Refusal("usage", "the fake lists only with -S");
  } else reader.run(args, args.table);
}

function noTable({ variant }: Program): string {
  return variant === "nft" ? "no such table" : "Table does not exist (do you need to insmod?)";
}

/** Options of restore and save, in the form in which Turnout gives them. */
const FLAGS: Readonly<Record<string, string>> = {
  "--noflush": "noflush",
  "-c": "counters",
  "-t": "t",
  "--test": "test",
  "-T": "table",
  "-w": "wait",
  "-V": "version",
};

/** @throws {Refusal} for an option there isn't. */
function readFlags(words: readonly string[]): ReadonlyMap<string, string> {
  const flags = new Map<string, string>();
  for (let at = 0; at < words.length; at++) {
    const [name = "", attached] = (words[at] ?? "").split("=", 2);
    const flag = FLAGS[name];
    if (flag === undefined) throw new Refusal("command", `unrecognized option ${name}`);
    const next = words[at + 1];
    const takesNext = flag === "table" || (flag === "wait" && next !== undefined && !/^[-!]/.test(next));
    flags.set(flag, attached ?? (takesNext ? (next ?? "") : ""));
    if (takesNext && attached === undefined) at++;
  }
  return flags;
}

function runOther(program: Program, words: readonly string[], input: string, reader: RestoreReader, rules: RuleSet): void {
  const isSave = program.does === "save";
  // What is `--test` to restore is a table to save.
  const flags = readFlags(isSave ? words.map((word) => (word === "-t" ? "-T" : word)) : words);
  const table = flags.get("table");
  if (flags.has("version")) {
    reader.printed = versionText(program);
    return;
  }
  if (!isSave) {
    reader.readAll(input, {
      isFlushing: !flags.has("noflush"),
      hasCounters: flags.has("counters"),
      isTest: flags.has("test") || flags.has("t"),
      onlyTable: table,
    });
    return;
  }
  if (table !== undefined && !isTableName(table)) throw new Refusal("command", noTable(program));
  // Looking at a legacy table makes the kernel make it.
  if (program.variant === "legacy" && table !== undefined && !rules.tables.has(table)) rules.tables.set(table, newTable(table));
  reader.printed = save(rules, flags.has("counters"), table);
}
