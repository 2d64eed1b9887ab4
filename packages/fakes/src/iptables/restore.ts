import { CHAIN_MAX, rawWords, unquoted } from "@turnout/host/iptables";
import type { SetLookup } from "../host/set-lookup.ts";
import { Draft } from "./draft.ts";
import { checkNewName, NOT_FOR_FILTERING, parseArguments } from "./parse-arguments.ts";
import type { Arguments } from "./parse-arguments.ts";
import { Refusal, usage, WORDS } from "./refusal.ts";
import { listRules } from "./save.ts";
import { isTableName, sortedChains, ZERO } from "./tables.ts";
import type { Counters, RuleSet } from "./tables.ts";
import type { TableName } from "./table-names.ts";

/** How restore was called. */
export interface RestoreOptions {
  readonly isFlushing: boolean;
  readonly hasCounters: boolean;
  /** Nothing is handed over. */
  readonly isTest: boolean;
  /** The only table that is looked at. */
  readonly onlyTable: string | undefined;
}

/** Something to do to a draft. */
interface Task {
  readonly line: number;
  readonly isChange: boolean;
  do(draft: Draft): void;
}

/**
 * Carries out the input of `iptables-restore`, table by table, or one command of `iptables`.
 *
 * Shape: each table is handed over at its COMMIT, by itself; what was handed over stays when a later one fails. Legacy does each line as it
 * reads it; nft reads up to COMMIT first and does then.
 * Edges: an input without a line's end behind COMMIT is refused, as by the real tool.
 */
export class RestoreReader {
  /** The one that is read, from 1. */
  line = 0;
  printed = "";
  readonly committed: TableName[] = [];
  readonly familyOfSet: SetLookup["familyOf"];
  readonly #rules: RuleSet;
  #options: RestoreOptions = { isFlushing: false, hasCounters: false, isTest: false, onlyTable: undefined };
  #table: TableName | undefined;
  /** Whether lines are passed over, up to COMMIT. */
  #isSkipping = false;
  /** What legacy has done so far. */
  #draft: Draft | undefined;
  /** What nft has still to do. */
  #tasks: Task[] = [];

  constructor(rules: RuleSet, sets: SetLookup) {
    this.#rules = rules;
    this.familyOfSet = (name) => sets.familyOf(name);
  }

  /** Carry out one command. @throws {Refusal}. */
  run(args: Arguments, table: TableName): void {
    this.#begin(table);
    this.#readArguments(args, args.counters);
    this.#commit(args.verb === "C" || args.verb === "S");
  }

  /** Carry out the input of restore. @throws {Refusal}, with the line that is read by then. */
  readAll(text: string, options: RestoreOptions): void {
    this.#options = options;
    const lines = text.split("\n");
    const last = lines.pop() ?? "";
    for (const line of lines) this.#read(line, true);
    if (last !== "") this.#read(last, false);
    if (this.#table === undefined && !this.#isSkipping) return;
    this.line++;
    throw new Refusal("command", "COMMIT expected");
  }

  get #isLegacy(): boolean {
    return this.#rules.variant === "legacy";
  }

  #read(text: string, hasEnd: boolean): void {
    this.line++;
    if (text === "" || text.startsWith("#")) return;
    const isInTable = this.#table !== undefined || this.#isSkipping;
    if (text === "COMMIT" && hasEnd && isInTable) return this.#commit(this.#options.isTest);
    if (text.startsWith("*") && !isInTable) return this.#begin(text.slice(1).split(/[ \t]/, 1)[0] ?? "");
    if (this.#isSkipping) return;
    if (this.#table === undefined) throw new Refusal("command", "");
    if (text.startsWith(":")) this.#readChain(text.slice(1));
    else this.#readRule(text);
  }

  #begin(name: string): void {
    const { onlyTable = name } = this.#options;
    this.#isSkipping = onlyTable !== name && name !== "";
    if (this.#isSkipping) return;
    if (!isTableName(name)) throw usage(`table name '${name}' invalid`);
    this.#table = name;
    this.#tasks = [];
    this.#draft = this.#newDraft(name, false);
  }

  #newDraft(table: TableName, isWalked: boolean): Draft {
    const draft = new Draft(table, this.#rules.variant, this.#rules.tables.get(table), isWalked);
    if (this.#options.isFlushing) draft.clear();
    return draft;
  }

  #readChain(text: string): void {
    const [name = "", policy = "", counterText = ""] = text.split(/[ \t]+/);
    if (name === "" || name.length > CHAIN_MAX) throw usage(`chain name '${name}' invalid`);
    const isBuiltin = this.#draft?.isBuiltin(name) === true;
    if (!isBuiltin && this.#isLegacy && ["ACCEPT", "DROP", "RETURN", "QUEUE"].includes(name)) throw usage(`error creating chain '${name}'`);
    if (!isBuiltin && !this.#isLegacy) checkNewName(name);
    if (policy === "") throw usage("policy invalid");
    const counters = this.#options.hasCounters ? countersOf(counterText) : ZERO;
    this.#do((draft) => {
      if (!isBuiltin) draft.declare(name);
      if (policy !== "-" && (isBuiltin || this.#isLegacy)) draft.setPolicy(name, policy, counters);
    });
  }

  #readRule(text: string): void {
    const [, counterText, rest = text] = /^\[([^\]]*)\](.*)$/.exec(text) ?? [];
    const counters = counterText === undefined ? undefined : countersOf(counterText);
    if (counters === undefined && text.startsWith("[")) throw usage("need ]");
    const words = rawWords(rest);
    if (words.some((word) => /^-(?:[^-]*t|-t(?:a(?:b(?:le?)?)?)?$)/.test(word))) throw usage("The -t option cannot be used in restore");
    const { family } = this.#rules;
    const args = parseArguments(words.map(unquoted), { family, isRestore: true, familyOfSet: this.familyOfSet });
    this.#readArguments(args, this.#options.hasCounters && counters !== undefined ? counters : args.counters);
  }

  #readArguments(args: Arguments, counters: Counters): void {
    checkForTable(args, this.#table ?? "filter", this.#rules.variant);
    const { line } = this;
    if (args.verb === "S") this.#do((draft) => this.#list(draft, args), false);
    else this.#do((draft) => draft.run({ ...args, counters }, line));
  }

  #list({ table, chains }: Draft, { chain, number }: Arguments): void {
    const found = chain === undefined ? undefined : chains.get(chain);
    if (chain !== undefined && found === undefined)
      throw new Refusal(
        "command",
        this.#isLegacy ? WORDS.noChain : `chain \`${chain}' in table \`${table}' is incompatible, use 'nft' tool.`,
      );
    this.printed += listRules(found === undefined ? sortedChains(chains) : [found], number);
  }

  #do(act: (draft: Draft) => void, isChange = true): void {
    // A line that only lists is never reported.
    if (!this.#isLegacy) this.#tasks.push({ line: isChange ? this.line : 0, do: act, isChange });
    else if (this.#draft !== undefined) act(this.#draft);
  }

  #commit(isTest: boolean): void {
    const table = this.#table;
    this.#table = undefined;
    this.#isSkipping = false;
    if (table === undefined || this.#draft === undefined) return;
    const draft = this.#isLegacy ? this.#draft : this.#replay(table, isTest);
    if (isTest) return;
    const word = this.#isLegacy ? draft.verdict() : undefined;
    if (word !== undefined) throw new Refusal("command", word);
    const isChange = this.#isLegacy || this.#tasks.some((task) => task.isChange);
    if (!isChange && !this.#options.isFlushing) return;
    this.#rules.tables.set(table, draft.chains);
    this.committed.push(table);
  }

  /** Do what was put off; what the kernel then has against it is reported all at once. */
  #replay(table: TableName, isTest: boolean): Draft {
    let draft = this.#execute(this.#newDraft(table, false));
    if (draft.faults.length === 0 && draft.verdict() !== undefined) draft = this.#execute(this.#newDraft(table, true));
    if (draft.faults.length > 0 && !isTest) throw new Refusal("kernel", draft.faults.join("\n"));
    return draft;
  }

  #execute(draft: Draft): Draft {
    const end = this.line;
    for (const task of this.#tasks) {
      try {
        task.do(draft);
      } catch (error) {
        // What is wrong with the command line itself is reported of the line that is read by now.
        if (error instanceof Refusal) this.line = error.kind === "usage" ? end : task.line;
        throw error;
      }
    }
    return draft;
  }
}

/** Check what depends on table and variant. @throws {Refusal}. */
function checkForTable({ verb, chain, rules, policy }: Arguments, table: string, variant: RuleSet["variant"]): void {
  for (const { inputLink, outputLink, target, matches, protocol } of rules) {
    if (table === "nat" && target?.text === "DROP") throw usage(NOT_FOR_FILTERING);
    if (outputLink !== undefined && (chain === "PREROUTING" || chain === "INPUT")) throw usage(`Can't use -o with ${chain}\n`);
    if (inputLink !== undefined && (chain === "POSTROUTING" || chain === "OUTPUT")) throw usage(`Can't use -i with ${chain}\n`);
    for (const { protocol: wanted } of variant === "nft" ? matches : [])
      if ((wanted === "tcp" || wanted === "udp") && protocol?.value !== wanted) throw usage(`${wanted} match requires '-p ${wanted}'`);
  }
  if (verb === "P" && table === "nat" && policy === "DROP") throw usage(NOT_FOR_FILTERING);
}

function countersOf(text: string): Counters | undefined {
  const [, packets, bytes] = /^\[?(\d+):(\d+)\]?$/.exec(text) ?? [];
  return packets === undefined ? undefined : { packets: Number(packets), bytes: Number(bytes) };
}
