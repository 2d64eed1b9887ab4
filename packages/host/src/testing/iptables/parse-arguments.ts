import type { IPFamily } from "@turnout/core";
import { checkOptions, giveOption, optionOf } from "./extension.ts";
import type { Extension, Given, MatchBody, OptionSpec, TargetBody } from "./extension.ts";
import type { SetLookup } from "../set-lookup.ts";
import { MATCHES } from "./matches.ts";
import { Refusal, usage } from "./refusal.ts";
import { readNetwork, ruleOf } from "./rule.ts";
import type { Network, Rule, Wanted } from "./rule.ts";
import { STANDARD_TARGETS, TARGETS } from "./targets.ts";
import { CHAIN_MAX, checkNewName, isVerb, linkName, LONG_OPTIONS, notForFiltering, protocolName, ruleNumber } from "./argument-words.ts";
import type { Verb } from "./argument-words.ts";
import { ZERO } from "./tables.ts";
import type { Counters } from "./tables.ts";

/** A command line that was understood. */
export interface Arguments {
  readonly verb: Verb;
  readonly chain: string | undefined;
  /** Of a rule, from 1. */
  readonly number: number | undefined;
  readonly policy: string | undefined;
  /** One for each pair of source and destination addresses. */
  readonly rules: readonly Rule[];
  readonly counters: Counters;
  readonly table: string;
  /** Seconds to wait for the lock; undefined: not at all; infinite where no number was given. */
  readonly waitSeconds: number | undefined;
}

/** What a command line is read for. */
export interface ArgumentContext {
  readonly family: IPFamily;
  readonly isRestore: boolean;
  /** The host's sets, which rules may name. */
  readonly sets: SetLookup;
}

/** Rule options no other verb takes. */
const RULE_VERBS: readonly Verb[] = ["A", "C", "D", "I", "R"];
const OPTIONAL_CHAIN: readonly Verb[] = ["F", "X", "L", "S", "Z"];

/**
 * Understand the words of a command line, or of a line of `iptables-restore`'s input.
 *
 * Edges: -E and abbreviated options are refused here though the real tool takes them.
 * @throws {Refusal}.
 */
export function parseArguments(words: readonly string[], context: ArgumentContext): Arguments {
  return new ArgumentReader(words, context).read();
}

interface Loaded<Body> {
  readonly extension: Extension<Body>;
  readonly given: Map<string, Given>;
}

class ArgumentReader {
  readonly #words: readonly string[];
  readonly #family: IPFamily;
  readonly #isRestore: boolean;
  readonly #sets: SetLookup;
  #at = 0;
  #isInverted = false;
  /** The option that is read, as it was written. */
  #option = "";
  #verb: Verb | undefined;
  #chain: string | undefined;
  #number: number | undefined;
  #policy: string | undefined;
  #table = "filter";
  #waitSeconds: number | undefined;
  #counters: Counters = ZERO;
  readonly #seen = new Set<string>();
  #sources: Wanted<string> | undefined;
  #destinations: Wanted<string> | undefined;
  #inputLink: Wanted<string> | undefined;
  #outputLink: Wanted<string> | undefined;
  #protocol: Wanted<string> | undefined;
  #jump: string | undefined;
  #isGoto = false;
  #target: Loaded<TargetBody> | undefined;
  readonly #matches: Loaded<MatchBody>[] = [];

  constructor(words: readonly string[], { family, isRestore, sets }: ArgumentContext) {
    this.#words = words;
    this.#family = family;
    this.#isRestore = isRestore;
    this.#sets = sets;
  }

  read(): Arguments {
    while (this.#at < this.#words.length) {
      const word = this.#words[this.#at++] ?? "";
      if (word === "!") {
        if (this.#isInverted) throw usage("multiple consecutive ! not allowed");
        this.#isInverted = true;
        continue;
      }
      if (!word.startsWith("-") || word === "-") throw new Refusal("argument", `Bad argument \`${word}'`);
      this.#readOption(word);
      this.#isInverted = false;
    }
    return this.#finish();
  }

  #readOption(word: string): void {
    this.#option = word;
    if (!word.startsWith("--")) return this.#readShort(word.slice(1));
    const equals = word.indexOf("=");
    const name = word.slice(2, equals < 0 ? undefined : equals);
    // `--option=value` is two words in one.
    const attached = equals < 0 ? undefined : word.slice(equals + 1);
    const short = LONG_OPTIONS[name];
    if (short !== undefined) return this.#readShort(short, attached);
    this.#readExtensionOption(name, attached);
  }

  #readShort(letter: string, attached?: string): void {
    const value = (): string => attached ?? this.#value();
    switch (letter) {
      case "s":
        this.#once("s", true);
        this.#sources = this.#wanted(value());
        return;
      case "d":
        this.#once("d", true);
        this.#destinations = this.#wanted(value());
        return;
      case "i":
        this.#once("i", true);
        this.#inputLink = this.#wanted(linkName(value()));
        return;
      case "o":
        this.#once("o", true);
        this.#outputLink = this.#wanted(linkName(value()));
        return;
      case "p":
        this.#once("p", true);
        this.#protocol = this.#wanted(protocolName(value()));
        if (this.#isInverted && this.#protocol.value === "all") throw usage("rule would never match protocol");
        return;
      case "m":
        this.#load(value());
        return;
      case "j":
      case "g":
        this.#once("j", false);
        this.#isGoto = letter === "g";
        this.#setTarget(value());
        return;
      case "c":
        this.#counters = { packets: Number(value()), bytes: Number(this.#value()) };
        return;
      case "t":
        this.#table = value();
        return;
      case "w":
        if (this.#isRestore) throw usage("You cannot use `-w' from iptables-restore");
        this.#waitSeconds = this.#nextIsValue() ? Number(this.#words[this.#at++]) : Number.POSITIVE_INFINITY;
        return;
      case "n":
        this.#seen.add("n");
        return;
      default:
        this.#readVerb(letter);
    }
  }

  #readVerb(letter: string): void {
    if (!isVerb(letter)) throw usage(`unknown option "${this.#option}"`);
    if (this.#verb !== undefined) throw usage(`Cannot use -${letter} with -${this.#verb}`);
    this.#verb = letter;
    if (letter === "V") return;
    if (!OPTIONAL_CHAIN.includes(letter)) this.#chain = this.#value();
    else if (this.#nextIsValue()) this.#chain = this.#words[this.#at++];
    if (letter === "P") {
      if (!this.#nextIsValue()) throw usage("-P requires a chain and a policy");
      this.#policy = this.#words[this.#at++];
    }
    const mayHaveNumber = letter === "I" || letter === "D" || letter === "R" || letter === "S";
    if (mayHaveNumber && this.#nextIsValue()) this.#number = ruleNumber(this.#words[this.#at++] ?? "");
    else if (letter === "R") throw usage("-R requires a rule number");
    if (letter === "N") checkNewName(this.#chain ?? "");
  }

  #readExtensionOption(name: string, attached: string | undefined): void {
    const find = (): { readonly loaded: Loaded<unknown>; readonly spec: ReturnType<typeof optionOf> } | undefined =>
      [...this.#matches, ...(this.#target === undefined ? [] : [this.#target])]
        .toReversed()
        .map((loaded) => ({ loaded, spec: optionOf(loaded.extension, name) }))
        .find(({ spec }) => spec !== undefined);
    let found = find();
    const protocol = this.#protocol?.value ?? "";
    // A port's match is loaded by the protocol, where nobody asked for it.
    if (found === undefined && MATCHES.has(protocol) && !this.#matches.some(({ extension }) => extension.name === protocol)) {
      this.#load(protocol);
      found = find();
    }
    if (found?.spec === undefined) throw usage(`unknown option "${this.#option}"`);
    const value = found.spec.isFlag === true ? "" : `${attached ?? this.#value()}${this.#second(found.spec)}`;
    giveOption(found.loaded.extension.name, found.spec, { value, isInverted: this.#isInverted }, found.loaded.given);
  }

  /** The second value of an option that has two, with a blank before it. */
  #second({ second }: OptionSpec): string {
    if (second === undefined) return "";
    if (!this.#nextIsValue()) throw usage(second);
    return ` ${this.#words[this.#at++]}`;
  }

  #load(name: string): void {
    const extension = MATCHES.get(name);
    if (extension === undefined) throw usage(`Couldn't load match \`${name}':No such file or directory\n`);
    this.#matches.push({ extension, given: new Map() });
  }

  #setTarget(name: string): void {
    if (name === "") throw usage("Invalid target name (too short)");
    if (name.length > CHAIN_MAX) throw usage(`Invalid target name \`${name}' (${CHAIN_MAX} chars max)`);
    this.#jump = name;
    const extension = this.#isGoto ? undefined : TARGETS.get(name);
    if (extension !== undefined) this.#target = { extension, given: new Map() };
  }

  #once(letter: string, isInvertible: boolean): void {
    if (this.#seen.has(letter)) throw usage(`multiple -${letter} flags not allowed`);
    if (this.#isInverted && !isInvertible) throw usage(`cannot have ! before -${letter}`);
    this.#seen.add(letter);
  }

  #value(): string {
    const value = this.#words[this.#at++];
    if (value === undefined) throw usage(`option "${this.#option}" requires an argument`);
    return value;
  }

  #nextIsValue(): boolean {
    const next = this.#words[this.#at];
    return next !== undefined && !next.startsWith("-") && !next.startsWith("!");
  }

  #wanted(value: string): Wanted<string> {
    return { value, isInverted: this.#isInverted };
  }

  #finish(): Arguments {
    if (this.#table === "nat" && (this.#jump === "DROP" || this.#policy === "DROP")) throw notForFiltering();
    for (const { extension, given } of this.#matches) checkOptions(extension, given);
    if (this.#target !== undefined) checkOptions(this.#target.extension, this.#target.given);
    // What is left to check goes in the real tool's order, as far as two faults in one line can be told apart.
    const rule = this.#rule();
    const verb = this.#verb;
    if (verb === undefined) throw usage("no command specified");
    if (this.#isInverted) throw usage("nothing appropriate following !");
    const isOfRule = RULE_VERBS.includes(verb);
    if (!isOfRule) for (const letter of this.#seen) if (letter !== "n" || (verb !== "L" && verb !== "S")) throw illegal(letter);
    if (isOfRule && this.#seen.has("n")) throw illegal("n");
    if (this.#chain !== undefined && this.#chain.length > CHAIN_MAX)
      throw usage(`chain name \`${this.#chain}' too long (must be under ${CHAIN_MAX + 1} chars)`);
    const rules = isOfRule ? this.#expand(rule) : [];
    if (verb === "R" && rules.length !== 1) throw usage("Replacement rule does not specify a unique address");
    return {
      verb,
      chain: this.#chain,
      number: this.#number,
      policy: this.#policy,
      rules,
      counters: this.#counters,
      table: this.#table,
      waitSeconds: this.#waitSeconds,
    };
  }

  #rule(): Omit<Rule, "source" | "destination" | "text"> {
    const protocol = this.#protocol?.value === "all" ? undefined : this.#protocol;
    const surroundings = { family: this.#family, protocol: protocol?.value, sets: this.#sets };
    const matches = this.#matches.map(({ extension, given }) => extension.finish(given, surroundings));
    const jump = this.#jump;
    const standard = jump === undefined || this.#isGoto ? undefined : STANDARD_TARGETS.get(jump);
    const target = this.#target?.extension.finish(this.#target.given, surroundings) ?? standard;
    return {
      inputLink: this.#inputLink,
      outputLink: this.#outputLink,
      protocol,
      matches,
      target,
      chain: target === undefined ? jump : undefined,
      isGoto: this.#isGoto,
    };
  }

  #expand(rule: Omit<Rule, "source" | "destination" | "text">): readonly Rule[] {
    const [sources, destinations] = [networks(this.#sources, this.#family), networks(this.#destinations, this.#family)];
    const isInverted = this.#sources?.isInverted === true || this.#destinations?.isInverted === true;
    if (isInverted && sources.length * destinations.length > 1)
      throw usage("! not allowed with multiple source or destination IP addresses");
    return sources.flatMap((source) => destinations.map((destination) => ruleOf({ ...rule, source, destination })));
  }
}

function networks(wanted: Wanted<string> | undefined, family: IPFamily): readonly (Wanted<Network> | undefined)[] {
  if (wanted === undefined) return [undefined];
  const texts = wanted.value.split(",");
  return texts.map((text) => ({ value: readNetwork(text, family), isInverted: wanted.isInverted }));
}

function illegal(letter: string): Refusal {
  return usage(`Illegal option \`-${letter}' with this command`);
}
