import type { CIDR } from "@turnout/core";
import { readNetwork } from "./addresses.ts";
import { checkOptions, giveOption, orUnknown, readOptions, UNKNOWN } from "./extension.ts";
import type { Extension, Given, MatchKind, OptionSpec, RuleSurroundings, TargetKind } from "./extension.ts";
import { ruleOf } from "./make-rule.ts";
import { MATCHES } from "./matches.ts";
import { protocolName } from "./protocols.ts";
import { badRule } from "./rule.ts";
import type { IptablesRule, MatchPart, RuleContext, Wanted } from "./rule.ts";
import { STANDARD_TARGETS, TARGETS } from "./targets.ts";

/** Characters of a chain's name. */
export const CHAIN_MAX = 28;
const LINK_MAX = 15;

interface Loaded<Kind extends Extension> {
  readonly extension: Kind;
  readonly given: Map<string, Given>;
}

/** Read the words of one rule, without its chain. @throws {ProxyError} `invalid_object`, where it is read strictly. */
export function readRule(words: readonly string[], context: RuleContext): IptablesRule {
  const [rule] = new RuleReader(words, context).readRules();
  if (rule === undefined) throw badRule("no rule");
  return rule;
}

/** Reads a rule word by word; a reader of whole command lines extends it. */
export class RuleReader {
  protected readonly context: RuleContext;
  /** The option that is read, as it was written. */
  protected option = "";
  /** Options of the rule that were given, by their letters. */
  protected readonly seen: Set<string> = new Set();
  protected jump: string | undefined;
  protected isInverted = false;
  readonly #words: readonly string[];
  #at = 0;
  readonly #wanted = new Map<string, Wanted<string>>();
  #isGoto = false;
  #target: Loaded<TargetKind> | undefined;
  readonly #matches: Loaded<MatchKind>[] = [];
  /** Something is asked of packets that isn't known. */
  #isUnknown = false;

  constructor(words: readonly string[], context: RuleContext) {
    this.#words = words;
    this.context = context;
  }

  /** The rules: one for each pair of source and destination addresses. */
  readRules(): readonly IptablesRule[] {
    this.readWords();
    return this.rules();
  }

  protected readWords(): void {
    while (this.#at < this.#words.length) {
      const word = this.#words[this.#at++] ?? "";
      if (word === "!") {
        if (this.isInverted && this.context.isStrict) throw badRule("multiple consecutive ! not allowed");
        this.isInverted = true;
        continue;
      }
      if (!word.startsWith("-") || word === "-") {
        if (this.context.isStrict) throw badRule(`Bad argument \`${word}'`);
        continue;
      }
      this.#readOption(word);
      this.isInverted = false;
    }
  }

  /** An option that isn't one of rules. */
  protected readOther(_letter: string): void {
    this.readUnknown();
  }

  protected readUnknown(): void {
    if (this.context.isStrict) throw badRule(`unknown option "${this.option}"`);
    // What comes behind the target is the target's.
    this.#isUnknown ||= this.jump === undefined;
  }

  protected value(): string {
    const value = this.#words[this.#at++];
    if (value === undefined && this.context.isStrict) throw badRule(`option "${this.option}" requires an argument`);
    return value ?? "";
  }

  protected nextIsValue(): boolean {
    const next = this.#words[this.#at];
    return next !== undefined && !next.startsWith("-") && !next.startsWith("!");
  }

  protected once(letter: string, isInvertible: boolean): void {
    if (!this.context.isStrict) return;
    if (this.seen.has(letter)) throw badRule(`multiple -${letter} flags not allowed`);
    if (this.isInverted && !isInvertible) throw badRule(`cannot have ! before -${letter}`);
    this.seen.add(letter);
  }

  #readOption(word: string): void {
    this.option = word;
    if (!word.startsWith("--")) return this.#readShort(word.slice(1));
    this.#readExtensionOption(word.slice(2));
  }

  #readShort(letter: string): void {
    switch (letter) {
      case "s":
      case "d":
      case "i":
      case "o":
      case "p": {
        this.once(letter, true);
        this.#wanted.set(letter, { value: this.value(), isInverted: this.isInverted });
        return;
      }
      case "m":
        this.#load(this.value());
        return;
      case "j":
      case "g":
        this.once("j", false);
        this.#isGoto = letter === "g";
        this.#setTarget(this.value());
        return;
      case "4":
      case "6":
        if (!this.context.isStrict) return;
    }
    this.readOther(letter);
  }

  #readExtensionOption(name: string): void {
    const find = (): { readonly loaded: Loaded<Extension>; readonly spec: OptionSpec } | undefined => {
      for (const loaded of [...this.#targets(), ...this.#matches.toReversed()]) {
        const spec = loaded.extension.options.find((option) => option.name === name || option.alias === name);
        if (spec !== undefined) return { loaded, spec };
      }
      return undefined;
    };
    let found = find();
    const protocol = this.#protocol() ?? "";
    // A port's match is loaded by the protocol, where the rule does not name it.
    if (found === undefined && MATCHES.has(protocol) && !this.#matches.some(({ extension }) => extension.name === protocol)) {
      this.#load(protocol);
      found = find();
    }
    if (found === undefined) return this.readUnknown();
    const { loaded, spec } = found;
    const words: string[] = [];
    while (words.length < (spec.values ?? 1)) {
      if (words.length > 0 && !this.nextIsValue() && this.context.isStrict) throw badRule(`--${name} requires ${spec.values} values`);
      words.push(this.value());
    }
    const given = { words, isInverted: this.isInverted };
    if (this.context.isStrict) giveOption(spec, given, loaded.given);
    else loaded.given.set(spec.name, given);
  }

  #protocol(): string | undefined {
    const wanted = this.#wanted.get("p");
    return wanted && orUnknown(() => protocolName(wanted.value), wanted.value, this.context);
  }

  #load(name: string): void {
    const extension = MATCHES.get(name);
    if (extension !== undefined && !(extension.isLoose === true && this.context.isStrict)) {
      this.#matches.push({ extension, given: new Map() });
    } else if (this.context.isStrict) throw badRule(`Couldn't load match \`${name}':No such file or directory\n`);
    else this.#isUnknown = true;
  }

  #setTarget(name: string): void {
    const { isStrict } = this.context;
    if (isStrict && (name === "" || name.length > CHAIN_MAX)) throw badRule(`Invalid target name \`${name}' (${CHAIN_MAX} chars max)`);
    this.jump = name;
    const extension = this.#isGoto ? undefined : TARGETS.get(name);
    if (extension !== undefined && !(isStrict && extension.isLoose === true)) this.#target = { extension, given: new Map() };
  }

  /** What was read. @throws {ProxyError} `invalid_object`. */
  protected rules(): readonly IptablesRule[] {
    const { isStrict } = this.context;
    const name = this.#protocol();
    const isNot = this.#wanted.get("p")?.isInverted ?? false;
    if (name === "all" && isNot && isStrict) throw badRule("rule would never match protocol");
    const protocol = name === undefined || name === "all" ? undefined : { value: name, isInverted: isNot };
    const surroundings: RuleSurroundings = { ...this.context, protocol: protocol?.value };
    for (const { extension, given } of [...this.#matches, ...this.#targets()]) if (isStrict) checkOptions(extension, given);
    const matches = this.#matches.map(({ extension, given }): MatchPart => {
      const options = readOptions(extension, given, surroundings);
      const part = orUnknown(() => extension.part?.(given, surroundings, options), { tests: [UNKNOWN] }, surroundings);
      return { text: `-m ${extension.name}${options.text}`, tests: options.tests, ...part };
    });
    const [inputLink, outputLink] = [this.#link("i"), this.#link("o")];
    const [sources, destinations] = [this.#networks("s"), this.#networks("d")];
    if (isStrict && sources.length * destinations.length > 1 && ["s", "d"].some((letter) => this.#wanted.get(letter)?.isInverted === true))
      throw badRule("! not allowed with multiple source or destination IP addresses");
    const parts = { inputLink, outputLink, protocol, matches, isGoto: this.#isGoto, ...this.#end(surroundings) };
    const unknown = this.#isUnknown ? [UNKNOWN] : [];
    return sources.flatMap((source) => destinations.map((destination) => ruleOf({ ...parts, source, destination }, unknown)));
  }

  #targets(): readonly Loaded<TargetKind>[] {
    return this.#target === undefined ? [] : [this.#target];
  }

  /** Where packets go: a target, or a chain. */
  #end(surroundings: RuleSurroundings): Pick<IptablesRule, "target" | "chain"> {
    const standard = this.jump === undefined || this.#isGoto ? undefined : STANDARD_TARGETS.get(this.jump);
    if (standard !== undefined) return { target: standard };
    if (this.#target === undefined) return { chain: this.jump };
    const { extension, given } = this.#target;
    const { text } = readOptions(extension, given, surroundings);
    const part = orUnknown(() => extension.part(given, surroundings), { action: { does: "nothing" } }, surroundings);
    return { target: { text: `${extension.name}${text}`, ...part } };
  }

  #networks(letter: string): readonly (Wanted<CIDR> | undefined)[] {
    const wanted = this.#wanted.get(letter);
    if (wanted === undefined) return [undefined];
    const { isInverted } = wanted;
    const read = (text: string): Wanted<CIDR> => ({ value: readNetwork(text, this.context.family), isInverted });
    const networks = orUnknown(() => wanted.value.split(",").map(read), undefined, this.context);
    this.#isUnknown ||= networks === undefined;
    return networks ?? [undefined];
  }

  #link(letter: string): Wanted<string> | undefined {
    const wanted = this.#wanted.get(letter);
    if (wanted === undefined || !this.context.isStrict) return wanted;
    if (wanted.value === "" || wanted.value.length > LINK_MAX) throw badRule(`bad interface name \`${wanted.value}'`);
    return wanted;
  }
}
