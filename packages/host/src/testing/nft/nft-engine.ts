import { execute, tableOf } from "./execute.ts";
import type { Transaction } from "./execute.ts";
import { rulesetText, setText, tablesText, tableText } from "./json.ts";
import { parseCommands } from "./parse-command.ts";
import { deferKernelRefusal, printRefusal, Refusal } from "./refusal.ts";
import { Ruleset } from "./ruleset.ts";
import { UndoLog } from "./undo-log.ts";
import type { Table } from "./ruleset.ts";
import type { Command } from "./syntax.ts";
import { validateTable } from "./validate.ts";

/** What one input came to. */
export interface NftResult {
  readonly isDone: boolean;
  readonly stdout: string;
  readonly stderr: string;
  /** Tables that were changed; empty when nothing was. */
  readonly changed: readonly string[];
}

/** nft and the kernel behind it: takes text, does all of it or nothing. */
export class NftEngine {
  readonly ruleset: Ruleset = new Ruleset();

  /** Carry out one input as one transaction; `file` is what messages call the input. */
  run(text: string, nowMs: number, file: string): NftResult {
    const transaction: Transaction = { ruleset: this.ruleset, undo: new UndoLog(), nowMs, touched: new Set(), rerouted: new Set() };
    let stdout = "";
    try {
      const commands = parseCommands(text);
      let refusal: Refusal | undefined;
      for (const command of commands) {
        if (isListing(command)) stdout += this.#list(command, nowMs);
        else refusal = deferKernelRefusal(refusal, () => execute(command, transaction));
      }
      if (refusal !== undefined) throw refusal;
      const last = commands.at(-1);
      if (last !== undefined && !transaction.undo.isEmpty) this.#validate(transaction.rerouted, last);
    } catch (error) {
      transaction.undo.rollBack();
      if (!(error instanceof Refusal)) throw error;
      return { isDone: false, stdout: "", stderr: printRefusal(error, text, file), changed: [] };
    }
    const changed = transaction.undo.isEmpty ? [] : [...transaction.touched].map(({ family, name }) => `${family} ${name}`);
    return { isDone: true, stdout, stderr: "", changed };
  }

  #validate(rerouted: ReadonlySet<Table>, last: Command): void {
    for (const table of rerouted) if (this.ruleset.table(table.family, table.name) === table) validateTable(table, last);
  }

  #list(command: Listing, nowMs: number): string {
    if (command.do === "list set") {
      const table = tableOf(command.place, this.ruleset, command);
      const set = table.sets.get(command.set.name);
      if (set === undefined) throw new Refusal("No such file or directory", command.set);
      return setText(table, set, nowMs);
    }
    if (command.do === "list table") return tableText(tableOf(command.place, this.ruleset, command), nowMs);
    return command.what === "tables" ? tablesText(this.ruleset, command.family) : rulesetText(this.ruleset, command.family, nowMs);
  }
}

type Listing = Extract<Command, { do: "list" | "list table" | "list set" }>;

function isListing(command: Command): command is Listing {
  return command.do === "list" || command.do === "list table" || command.do === "list set";
}
