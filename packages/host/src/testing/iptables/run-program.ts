import type { IPFamily } from "@turnout/core";
import type { SetLookup } from "../set-lookup.ts";
import { Draft } from "./draft.ts";
import { parseArguments } from "./parse-arguments.ts";
import type { Arguments } from "./parse-arguments.ts";
import { Refusal, WORDS } from "./refusal.ts";
import { checkForTable, restore } from "./restore.ts";
import type { RestoreOptions } from "./restore.ts";
import { listRules, save } from "./save.ts";
import { isTableName, newTable, sortedChains } from "./tables.ts";
import type { RuleSet } from "./tables.ts";
import type { TableName } from "./table-names.ts";
import type { IptablesVariant } from "../../iptables/tools.ts";

const VERSION = "v1.8.9";

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
  /** Whether there are legacy tables of this family, which nft's tools warn of. */
  readonly hasLegacyTables: boolean;
  readonly nowMs: number;
  readonly sets: SetLookup;
}

/** Run a program once. */
export function runProgram(program: Program, args: readonly string[], input: string, host: ProgramHost): ToolResult {
  switch (program.does) {
    case "change":
      return runChange(program, args, host);
    case "restore":
      return runRestore(program, args, input, host);
    case "save":
      return runSave(program, args, host);
  }
}

function answer(code: number, stdout: string = "", stderr: string = "", committed: readonly TableName[] = []): ToolResult {
  return { code, stdout, stderr, committed };
}

/** What messages call a program: legacy says the same whatever it was called. */
export function programName({ variant, family, does, name }: Program): string {
  const plain = family === "IPv4" ? "iptables" : "ip6tables";
  return does === "change" ? plain : variant === "nft" ? name : `${plain}-${does}`;
}

function withVersion(program: Program): string {
  return `${programName(program)} ${VERSION} (${program.variant === "nft" ? "nf_tables" : "legacy"})`;
}

/** Print a complaint; `line` is that of the input, undefined outside of restore. */
function complain(program: Program, { kind, message }: Refusal, line: number | undefined): ToolResult {
  const name = programName(program);
  const where = line === undefined ? "" : `Error occurred at line: ${line}\n`;
  const hint = `${where}Try \`${name} -h' or '${name} --help' for more information.\n`;
  switch (kind) {
    case "usage":
      return answer(2, "", `${withVersion(program)}: ${message}\n${hint}`);
    case "argument":
      return answer(2, "", `${message}\n${hint}`);
    case "command": {
      if (line === undefined) {
        const more = message === WORDS.invalid ? " Run `dmesg' for more information." : "";
        return answer(1, "", `${name}: ${message}.${more}\n`);
      }
      const reason = program.variant === "nft" && message !== "" ? `: ${message}.` : "";
      return answer(1, "", `${name}: line ${line} failed${reason}\n`);
    }
    case "kernel":
      return answer(4, "", `${withVersion(program)}: ${line === undefined ? message.replace(/^line \d+:/, "") : `\n${message}`}\n`);
    case "plain":
      return answer(1, "", message);
  }
}

function runChange(program: Program, words: readonly string[], host: ProgramHost): ToolResult {
  try {
    const args = parseArguments(words, { family: program.family, isRestore: false, familyOfSet: (name) => host.sets.familyOf(name) });
    if (args.verb === "V") return answer(0, `${withVersion(program)}\n`);
    const { table } = args;
    if (!isTableName(table)) return answer(3, "", noTable(program, table));
    checkForTable(args, table, program.variant);
    if (args.verb === "S") return list(program, args, table, host);
    // Its columns are for people; nothing here reads them.
    if (args.verb === "L") return answer(2, "", "the fake lists with -S alone\n");
    return change(program, args, table, host);
  } catch (error) {
    if (error instanceof Refusal) return complain(program, error, undefined);
    throw error;
  }
}

function change({ variant }: Program, args: Arguments, table: TableName, { rules }: ProgramHost): ToolResult {
  let draft = new Draft(table, variant, rules.tables.get(table));
  draft.run(args, 1);
  if (variant === "nft" && draft.faults.length === 0 && draft.verdict() !== undefined) {
    draft = new Draft(table, variant, rules.tables.get(table), true);
    draft.run(args, 1);
  }
  if (variant === "nft" && draft.faults.length > 0) throw new Refusal("kernel", draft.faults.join("\n"));
  const word = variant === "legacy" ? draft.verdict() : undefined;
  if (word !== undefined) throw new Refusal("command", word);
  if (args.verb === "C") return answer(0);
  rules.tables.set(table, draft.chains);
  return answer(0, "", "", [table]);
}

function list(program: Program, { chain, number }: Arguments, table: TableName, host: ProgramHost): ToolResult {
  const chains = host.rules.tables.get(table) ?? newTable(table);
  const warning = host.hasLegacyTables && program.variant === "nft" ? legacyWarning(program) : "";
  const found = chain === undefined ? undefined : chains.get(chain);
  if (chain !== undefined && found === undefined) {
    if (program.variant === "legacy") throw new Refusal("command", WORDS.noChain);
    const what = `chain \`${chain}' in table \`${table}' is incompatible, use 'nft' tool.`;
    return answer(1, "", `${warning}${withVersion(program)}: ${what}\n`);
  }
  return answer(0, listRules(found === undefined ? sortedChains(chains) : [found], number), warning);
}

function legacyWarning({ family, does }: Program): string {
  const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-legacy${does === "save" ? "-save" : ""}`;
  return `# Warning: ${tool} tables present, use ${tool} to see them\n`.replace("-save tables", " tables");
}

function noTable(program: Program, table: string): string {
  const what =
    program.variant === "nft"
      ? `table '${table}' does not exist`
      : `can't initialize ${programName(program)} table \`${table}': Table does not exist (do you need to insmod?)`;
  return `${withVersion(program)}: ${what}\nPerhaps ${programName(program)} or your kernel needs to be upgraded.\n`;
}

/** Options of restore and save; gives undefined for one there isn't. */
function readFlags(words: readonly string[]): ReadonlyMap<string, string> | string {
  const flags = new Map<string, string>();
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const [name = "", attached] = word.split("=", 2);
    const flag = FLAGS[name];
    if (flag === undefined) return word;
    const next = words[at + 1];
    const takesNext = flag === "table" || (flag === "wait" && next !== undefined && !/^[-!]/.test(next));
    flags.set(flag, attached ?? (takesNext ? (next ?? "") : ""));
    if (takesNext && attached === undefined) at++;
  }
  return flags;
}

const FLAGS: Readonly<Record<string, string>> = {
  "-n": "noflush",
  "--noflush": "noflush",
  "-c": "counters",
  "--counters": "counters",
  "-t": "t",
  "--test": "test",
  "-T": "table",
  "--table": "table",
  "-w": "wait",
  "--wait": "wait",
  "-V": "version",
  "--version": "version",
};

function unknownFlag({ variant, family, does, name }: Program, word: string): ToolResult {
  const plain = family === "IPv4" ? "iptables" : "ip6tables";
  const called = variant === "nft" ? name : `${plain}-legacy-${does}`;
  const shown = variant === "nft" ? name : `${plain}-${does}`;
  const what = word.startsWith("--") ? `unrecognized option '${word}'` : `invalid option -- '${word.charAt(1)}'`;
  const hint = does === "save" ? `Look at manual page \`${shown}.8' for more information.` : `Try \`${shown} -h' for more information.`;
  return answer(1, "", `${called}: ${what}\n${hint}\n`);
}

function runRestore(program: Program, words: readonly string[], input: string, { rules, sets }: ProgramHost): ToolResult {
  const flags = readFlags(words);
  if (typeof flags === "string") return unknownFlag(program, flags);
  if (flags.has("version")) return answer(0, `${withVersion(program)}\n`);
  const committed: TableName[] = [];
  const listed: string[] = [];
  const options: RestoreOptions = {
    program: programName(program),
    isFlushing: !flags.has("noflush"),
    hasCounters: flags.has("counters"),
    isTest: flags.has("test") || flags.has("t"),
    onlyTable: flags.get("table"),
    onCommit: (table) => committed.push(table),
    onListed: (text) => listed.push(text),
    sets,
  };
  const complaint = restore(input, rules, options);
  const stdout = listed.join("");
  if (complaint === undefined) return answer(0, stdout, "", committed);
  return { ...complain(program, complaint.refusal, complaint.line), stdout, committed };
}

function runSave(program: Program, words: readonly string[], { rules, hasLegacyTables, nowMs }: ProgramHost): ToolResult {
  // What is `--test` to restore is a table to save.
  const flags = readFlags(words.map((word) => (word === "-t" ? "-T" : word)));
  if (typeof flags === "string") return unknownFlag(program, flags);
  if (flags.has("version")) return answer(0, `${withVersion(program)}\n`);
  const table = flags.get("table");
  const isLegacy = program.variant === "legacy";
  if (table !== undefined && !isTableName(table)) {
    const what = `${withVersion(program)}: Cannot initialize: Table does not exist (do you need to insmod?)`;
    return answer(1, "", isLegacy ? `${what}\n` : `Table \`${table}' does not exist\n`);
  }
  // Looking at a legacy table makes the kernel make it.
  if (isLegacy && table !== undefined && !rules.tables.has(table)) rules.tables.set(table, newTable(table));
  const named = isLegacy ? `${programName(program)} ${VERSION}` : withVersion(program);
  const text = save(rules, { program: named, hasCounters: flags.has("counters"), table, nowMs });
  return answer(0, text, hasLegacyTables && !isLegacy ? legacyWarning(program) : "");
}
