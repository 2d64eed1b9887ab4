import { ProxyError } from "@turnout/core";
import { CHAIN_MAX, RuleReader, STANDARD_TARGETS, TARGETS } from "@turnout/host/iptables";
import type { IptablesRule, RuleContext } from "@turnout/host/iptables";
import { usage } from "./refusal.ts";
import { ZERO } from "./tables.ts";
import type { Counters } from "./tables.ts";

/** What a command line asks for. */
export type Verb = "A" | "C" | "D" | "I" | "R" | "N" | "F" | "X" | "P" | "L" | "S" | "Z" | "V";

/** A command line that was understood. */
export interface Arguments {
  readonly verb: Verb;
  readonly chain: string | undefined;
  /** Of a rule, from 1. */
  readonly number: number | undefined;
  readonly policy: string | undefined;
  /** One for each pair of source and destination addresses. */
  readonly rules: readonly IptablesRule[];
  readonly counters: Counters;
  readonly table: string;
}

/** What a command line is read for. */
export interface ArgumentContext extends Omit<RuleContext, "isStrict"> {
  readonly isRestore: boolean;
}

/** Verbs of rules. */
const RULE_VERBS: readonly Verb[] = ["A", "C", "D", "I", "R"];
const OPTIONAL_CHAIN: readonly Verb[] = ["F", "X", "L", "S", "Z"];

/**
 * Understand the words of a command line, or of a line of `iptables-restore`'s input.
 *
 * Edges: -E and the long forms of options that have a letter are refused here though the real tool takes them.
 * @throws {Refusal}.
 */
export function parseArguments(words: readonly string[], context: ArgumentContext): Arguments {
  try {
    return new ArgumentReader(words, context).read();
  } catch (error) {
    throw ProxyError.is(error, "invalid_object") ? usage(error.what) : error;
  }
}

/** Check the name of a new chain. @throws {Refusal}. */
export function checkNewName(name: string): void {
  if (/^[-!]/.test(name)) throw usage(`chain name not allowed to start with \`${name.charAt(0)}'`);
  const { isLoose = false } = TARGETS.get(name) ?? { isLoose: true };
  if (STANDARD_TARGETS.has(name) || !isLoose) throw usage("chain name may not clash with target name");
}

class ArgumentReader extends RuleReader {
  readonly #isRestore: boolean;
  #verb: Verb | undefined;
  #chain: string | undefined;
  #number: number | undefined;
  #policy: string | undefined;
  #table = "filter";
  #counters: Counters = ZERO;

  constructor(words: readonly string[], { isRestore, ...context }: ArgumentContext) {
    super(words, { ...context, isStrict: true });
    this.#isRestore = isRestore;
  }

  read(): Arguments {
    this.readWords();
    if (this.#table === "nat" && (this.jump === "DROP" || this.#policy === "DROP")) throw usage(NOT_FOR_FILTERING);
    const rules = this.rules();
    const [verb, chain] = [this.#verb, this.#chain];
    if (verb === undefined) throw usage("no command specified");
    if (this.isInverted) throw usage("nothing appropriate following !");
    const isOfRule = RULE_VERBS.includes(verb);
    const isTaken = (letter: string): boolean => (letter === "c" ? "AIR" : RULE_VERBS.join("")).includes(verb);
    const illegal = [...this.seen].find((letter) => !isTaken(letter));
    if (illegal !== undefined) throw usage(`Illegal option \`-${illegal}' with this command`);
    if (chain !== undefined && chain.length > CHAIN_MAX)
      throw usage(`chain name \`${chain}' too long (must be under ${CHAIN_MAX + 1} chars)`);
    if (verb === "R" && rules.length !== 1) throw usage("Replacement rule does not specify a unique address");
    return {
      verb,
      chain,
      number: this.#number,
      policy: this.#policy,
      rules: isOfRule ? rules : [],
      counters: this.#counters,
      table: this.#table,
    };
  }

  protected override readOther(letter: string): void {
    switch (letter) {
      case "c":
        this.seen.add("c");
        this.#counters = { packets: Number(this.value()), bytes: Number(this.value()) };
        return;
      case "t":
        this.#table = this.value();
        return;
      case "w":
        if (this.#isRestore) throw usage("You cannot use `-w' from iptables-restore");
        if (this.nextIsValue()) this.value();
        return;
      default:
        this.#readVerb(letter);
    }
  }

  #readVerb(letter: string): void {
    if (!isVerb(letter)) return this.readUnknown();
    if (this.#verb !== undefined) throw usage(`Cannot use -${letter} with -${this.#verb}`);
    this.#verb = letter;
    if (letter === "V") return;
    if (!OPTIONAL_CHAIN.includes(letter)) this.#chain = this.value();
    else if (this.nextIsValue()) this.#chain = this.value();
    if (letter === "P") {
      if (!this.nextIsValue()) throw usage("-P requires a chain and a policy");
      this.#policy = this.value();
    }
    if (["I", "D", "R", "S"].includes(letter) && this.nextIsValue()) this.#number = ruleNumber(this.value());
    else if (letter === "R") throw usage("-R requires a rule number");
    if (letter === "N") checkNewName(this.#chain ?? "");
  }
}

/** What is said of DROP in the nat table. */
export const NOT_FOR_FILTERING = '\nThe "nat" table is not intended for filtering, the use of DROP is therefore inhibited.\n\n';

function isVerb(letter: string): letter is Verb {
  return letter.length === 1 && "ACDIRNFXPLSZV".includes(letter);
}

function ruleNumber(text: string): number {
  const number = /^(?:0x[\da-f]+|\d+)$/i.test(text) ? Number(text) : 0;
  if (number === 0 || number > 0x7fff_ffff) throw usage(`Invalid rule number \`${text}'`);
  return number;
}
