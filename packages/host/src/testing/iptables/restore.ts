import type { SetLookup } from "../set-lookup.ts";
import { Draft } from "./draft.ts";
import { CHAIN_MAX } from "../../iptables/rules/rule-reader.ts";
import { rawWords, unquoted } from "../../iptables/rules/words.ts";
import { checkNewName, NOT_FOR_FILTERING, parseArguments } from "./parse-arguments.ts";
import type { Arguments } from "./parse-arguments.ts";
import { Refusal, usage } from "./refusal.ts";
import { listRules } from "./save.ts";
import { isTableName, sortedChains, ZERO } from "./tables.ts";
import type { Counters, RuleSet } from "./tables.ts";
import type { TableName } from "./table-names.ts";

/** How restore was called. */
export interface RestoreOptions {
  /** What messages call the program. */
  readonly program: string;
  readonly isFlushing: boolean;
  readonly hasCounters: boolean;
  /** Nothing is handed over. */
  readonly isTest: boolean;
  /** The only table that is looked at. */
  readonly onlyTable: string | undefined;
  /** Called with each table handed over that differs or was written again. */
  readonly onCommit: (table: TableName) => void;
  /** Called with what `-S` among the lines prints. */
  readonly onListed: (text: string) => void;
  readonly sets: SetLookup;
}

/** What restore came to: a complaint and the line it is about, or nothing. */
export type RestoreComplaint = { readonly refusal: Refusal; readonly line: number } | undefined;

/**
 * Carry out the input of `iptables-restore`, table by table.
 *
 * Shape: each table is handed over at its COMMIT, by itself; what was handed over stays when a later one fails. Legacy does each line as it
 * reads it; nft reads up to COMMIT first and does then.
 * Edges: an input without a line's end behind COMMIT is refused, as by the real tool.
 */
export function restore(text: string, rules: RuleSet, options: RestoreOptions): RestoreComplaint {
  const reader = new RestoreReader(rules, options);
  const lines = text.split("\n");
  const last = lines.pop() ?? "";
  try {
    for (const line of lines) reader.read(line, true);
    if (last !== "") reader.read(last, false);
    reader.end();
  } catch (error) {
    if (error instanceof Refusal) return { refusal: error, line: reader.line };
    throw error;
  }
  return undefined;
}

/** Something to do to a draft. */
interface Task {
  readonly line: number;
  readonly isChange: boolean;
  do(draft: Draft): void;
}

class RestoreReader {
  line = 0;
  readonly #rules: RuleSet;
  readonly #options: RestoreOptions;
  #table: TableName | undefined;
  /** Whether lines are passed over, up to COMMIT. */
  #isSkipping = false;
  /** What legacy has done so far. */
  #draft: Draft | undefined;
  /** What nft has still to do. */
  #tasks: Task[] = [];

  constructor(rules: RuleSet, options: RestoreOptions) {
    this.#rules = rules;
    this.#options = options;
  }

  read(text: string, hasEnd: boolean): void {
    this.line++;
    if (text === "" || text.startsWith("#")) return;
    const isInTable = this.#table !== undefined || this.#isSkipping;
    if (text === "COMMIT" && hasEnd && isInTable) return this.#commit();
    if (text.startsWith("*") && !isInTable) return this.#begin(text.slice(1).split(/[ \t]/, 1)[0] ?? "");
    if (this.#isSkipping) return;
    if (this.#table === undefined) throw this.#failed();
    if (text.startsWith(":")) this.#readChain(text.slice(1));
    else this.#readRule(text);
  }

  end(): void {
    if (this.#table === undefined && !this.#isSkipping) return;
    throw new Refusal("plain", `${this.#options.program}: COMMIT expected at line ${this.line + 1}\n`);
  }

  #begin(name: string): void {
    const { program, onlyTable } = this.#options;
    if (name === "") throw usage(`${program}: line ${this.line} table name invalid`);
    if (onlyTable !== undefined && onlyTable !== name) {
      this.#isSkipping = true;
      return;
    }
    if (!isTableName(name)) {
      const isLegacy = this.#rules.variant === "legacy";
      throw usage(
        isLegacy ? `${program}: unable to initialize table '${name}'` : `${program}: line ${this.line} table name '${name}' invalid`,
      );
    }
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
    const [name = "", policy, counterText] = text.split(/[ \t]+/);
    const { program } = this.#options;
    if (name === "") throw usage(`${program}: line ${this.line} chain name invalid`);
    const isLegacy = this.#rules.variant === "legacy";
    if (name.length > CHAIN_MAX) {
      throw usage(
        isLegacy
          ? `Invalid chain name \`${name}' (${CHAIN_MAX} chars max)`
          : `chain name \`${name}' too long (must be under ${CHAIN_MAX + 1} chars)`,
      );
    }
    const isBuiltin = this.#draft?.isBuiltin(name) === true;
    if (!isBuiltin && (!isLegacy || isReserved(name))) {
      if (isLegacy) throw usage(`error creating chain '${name}':File exists`);
      checkNewName(name);
    }
    if (policy === undefined || policy === "") throw usage(`${program}: line ${this.line} policy invalid`);
    const counters = this.#options.hasCounters ? countersOf(counterText ?? "") : ZERO;
    this.#do((draft) => {
      if (!isBuiltin) draft.declare(name);
      if (policy === "-" || (!isBuiltin && !isLegacy)) return;
      if (!isLegacy) return draft.setPolicy(name, policy, counters);
      try {
        draft.setPolicy(name, policy, counters);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        const what = `Can't set policy \`${policy}' on \`${name}' line ${this.line}: ${error.message}`;
        throw new Refusal("plain", `${program} v1.8.9 (legacy): ${what}\n`);
      }
    });
  }

  #readRule(text: string): void {
    const [, counterText, rest = text] = /^\[([^\]]*)\](.*)$/.exec(text) ?? [];
    const counters = counterText === undefined ? undefined : countersOf(counterText);
    if ((text.startsWith("[") && counterText === undefined) || (counterText !== undefined && counters === undefined))
      throw usage(`Bad line ${this.line}: need ]`);
    const { program, hasCounters } = this.#options;
    const words = rawWords(rest);
    if (words.some((word) => /^-(?:[^-]*t|-t(?:a(?:b(?:le?)?)?)?$)/.test(word)))
      throw usage(`The -t option cannot be used in ${program}.\n`);
    const { sets } = this.#options;
    const args = parseArguments(words.map(unquoted), {
      family: this.#rules.family,
      isRestore: true,
      familyOfSet: (name) => sets.familyOf(name),
    });
    checkForTable(args, this.#table ?? "filter", this.#rules.variant);
    const { line } = this;
    const counted = hasCounters && counters !== undefined ? { ...args, counters } : args;
    if (args.verb === "S") this.#do((draft) => this.#list(draft, args), false);
    else this.#do((draft) => draft.run(counted, line));
  }

  #list({ table, chains }: Draft, { chain, number }: Arguments): void {
    const found = chain === undefined ? undefined : chains.get(chain);
    if (chain !== undefined && found === undefined) {
      if (this.#rules.variant === "legacy") throw this.#failed();
      const what = `chain \`${chain}' in table \`${table}' is incompatible, use 'nft' tool.`;
      throw new Refusal("plain", `${this.#options.program} v1.8.9 (nf_tables): ${what}\n`);
    }
    this.#options.onListed(listRules(found === undefined ? sortedChains(chains) : [found], number));
  }

  #do(act: (draft: Draft) => void, isChange = true): void {
    if (this.#rules.variant === "nft") this.#tasks.push({ line: this.line, do: act, isChange });
    else if (this.#draft !== undefined) act(this.#draft);
  }

  #commit(): void {
    const table = this.#table;
    this.#table = undefined;
    this.#isSkipping = false;
    if (table === undefined || this.#draft === undefined) return;
    const draft = this.#rules.variant === "nft" ? this.#replay(table) : this.#draft;
    if (this.#options.isTest) return;
    if (this.#rules.variant === "legacy" && draft.verdict() !== undefined) throw this.#failed();
    if (this.#rules.variant === "nft" && !this.#tasks.some(({ isChange }) => isChange) && !this.#options.isFlushing) return;
    this.#rules.tables.set(table, draft.chains);
    this.#options.onCommit(table);
  }

  /** Do what was put off; what the kernel then has against it is told all at once. */
  #replay(table: TableName): Draft {
    let draft = this.#execute(this.#newDraft(table, false));
    if (draft.faults.length === 0 && draft.verdict() !== undefined) draft = this.#execute(this.#newDraft(table, true));
    if (draft.faults.length > 0 && !this.#options.isTest) throw new Refusal("kernel", draft.faults.join("\n"));
    return draft;
  }

  #execute(draft: Draft): Draft {
    const end = this.line;
    for (const task of this.#tasks) {
      try {
        task.do(draft);
      } catch (error) {
        // What is wrong with the command line itself is told of the line that is read by now.
        if (error instanceof Refusal) this.line = error.kind === "usage" ? end : task.line;
        throw error;
      }
    }
    return draft;
  }

  #failed(): Refusal {
    return new Refusal("command", "");
  }
}

/** Check what depends on table and variant. @throws {Refusal}. */
export function checkForTable({ verb, chain, rules, policy }: Arguments, table: string, variant: RuleSet["variant"]): void {
  for (const { inputLink, outputLink, target, matches, protocol } of rules) {
    if (table === "nat" && target?.text === "DROP") throw usage(NOT_FOR_FILTERING);
    if (outputLink !== undefined && (chain === "PREROUTING" || chain === "INPUT")) throw usage(`Can't use -o with ${chain}\n`);
    if (inputLink !== undefined && (chain === "POSTROUTING" || chain === "OUTPUT")) throw usage(`Can't use -i with ${chain}\n`);
    for (const { protocol: wanted } of variant === "nft" ? matches : [])
      if ((wanted === "tcp" || wanted === "udp") && protocol?.value !== wanted)
        throw usage(`${wanted.toUpperCase()} match requires '-p ${wanted}'`);
  }
  if (verb === "P" && table === "nat" && policy === "DROP") throw usage(NOT_FOR_FILTERING);
}

function isReserved(name: string): boolean {
  return ["ACCEPT", "DROP", "RETURN", "QUEUE"].includes(name);
}

function countersOf(text: string): Counters | undefined {
  const [, packets, bytes] = /^\[?(\d+):(\d+)\]?$/.exec(text) ?? [];
  return packets === undefined ? undefined : { packets: Number(packets), bytes: Number(bytes) };
}
