import { ProxyError } from "@turnout/core";
import type { PartlyKnown, Test } from "../../rules/rule.ts";
import { badRule } from "./rule.ts";
import type { MatchPart, RuleContext, TargetPart } from "./rule.ts";

/** What surrounds a match or target. */
export interface RuleSurroundings extends RuleContext {
  /** `tcp`, …; undefined for all. */
  readonly protocol: string | undefined;
}

/** An option's words, understood: how they are printed, and what is asked of packets. */
export interface OptionValue {
  readonly text: string;
  readonly test?: Test;
  /** Every packet fits, so it is printed only where it is inverted. */
  readonly isAll?: boolean;
}

/** An option of a match or target, without its dashes; options are printed in the order in which they are listed. */
export interface OptionSpec {
  readonly name: string;
  /** Another word for it. */
  readonly alias?: string;
  /** The option that it is printed as; absent: as itself. */
  readonly printedAs?: string;
  /** How many words follow; default 1. */
  readonly values?: 0 | 1 | 2;
  readonly isInvertible?: boolean;
  readonly isRequired?: boolean;
  /** One of these has to be given, and no other. */
  readonly isChoice?: boolean;
  /** Options that must be given, too. */
  readonly needs?: readonly string[];
  /** What is printed of one that wasn't given; absent: nothing. */
  readonly default?: (surroundings: RuleSurroundings) => string;
  /** Make sense of its words; absent: they are printed as they are. @throws {ProxyError} `invalid_object`. */
  readonly read?: (word: string, surroundings: RuleSurroundings, second: string) => OptionValue;
}

/** An option as it was given. */
export interface Given {
  readonly words: readonly string[];
  readonly isInverted: boolean;
}

/** The options of one match or target, by name. */
export type GivenOptions = ReadonlyMap<string, Given>;

/** A kind of match or target. */
export interface Extension {
  readonly name: string;
  readonly options: readonly OptionSpec[];
  readonly needsOption?: boolean;
  /** It is known as far as packets are judged by it, and not how it is printed: only what a tool printed is read. */
  readonly isLoose?: boolean;
}

/** A kind of match. */
export interface MatchKind extends Extension {
  /** What its options don't say one by one. @throws {ProxyError} `invalid_object`. */
  readonly part?: (given: GivenOptions, surroundings: RuleSurroundings, options: Options) => Partial<MatchPart>;
}

/** A kind of target. */
export interface TargetKind extends Extension {
  /** What it does. @throws {ProxyError} `invalid_object`. */
  readonly part: (given: GivenOptions, surroundings: RuleSurroundings) => Omit<TargetPart, "text"> & { readonly text?: string };
}

/** Options as printed, and their questions. */
export interface Options {
  readonly text: string;
  readonly tests: readonly Test[];
}

/** A question that has no answer. */
export const UNKNOWN: Test = () => undefined;

/** An option whose one word is asked of packets, and printed as it is. */
export function asks(name: string, test: (packet: PartlyKnown, text: string) => boolean | undefined): OptionSpec {
  return { name, isInvertible: true, read: (text) => ({ text, test: (packet) => test(packet, text) }) };
}

/** Note an option. @throws {ProxyError} `invalid_object` when it may not be given so. */
export function giveOption(spec: OptionSpec, option: Given, into: Map<string, Given>): void {
  if (option.isInverted && spec.isInvertible !== true) throw badRule(`option "--${spec.name}" cannot be inverted`);
  if (into.has(spec.name)) throw badRule(`option "--${spec.name}" can only be used once`);
  into.set(spec.name, option);
}

/** Check that an extension's options go together. @throws {ProxyError} `invalid_object` when not. */
export function checkOptions({ name: extension, options, needsOption = false }: Extension, given: GivenOptions): void {
  if (needsOption && given.size === 0) throw badRule(`${extension}: at least one option is required`);
  const choices = options.filter(({ isChoice }) => isChoice);
  if (choices.length > 0 && choices.filter(({ name }) => given.has(name)).length !== 1) throw badRule(`${extension}: which one?`);
  for (const { name, needs = [], isRequired = false } of options) {
    if (isRequired && !given.has(name)) throw badRule(`${extension}: option "--${name}" must be specified`);
    if (given.has(name) && !needs.every((other) => given.has(other)))
      throw badRule(`${extension}: "--${name}" also requires ${needs.join()}`);
  }
}

/** Make sense of the options of one match or target. @throws {ProxyError} `invalid_object`. */
export function readOptions({ options }: Extension, given: GivenOptions, surroundings: RuleSurroundings): Options {
  const texts: string[] = [];
  const tests: Test[] = [];
  for (const spec of options) {
    const { words, isInverted } = given.get(spec.name) ?? { words: undefined, isInverted: false };
    if (words === undefined) {
      if (spec.default !== undefined) texts.push(` --${spec.name}${spaced(spec.default(surroundings))}`);
      continue;
    }
    const [first = "", second = ""] = words;
    const plain: OptionValue = { text: words.join(" ") };
    const read = (): OptionValue => spec.read?.(first, surroundings, second) ?? plain;
    const { text, test, isAll = false } = orUnknown(read, { ...plain, test: UNKNOWN }, surroundings);
    if (!isAll || isInverted) texts.push(` ${isInverted ? "! " : ""}--${spec.printedAs ?? spec.name}${spaced(text)}`);
    if (test !== undefined) tests.push(isInverted ? inverted(test) : test);
  }
  return { text: texts.join(""), tests };
}

/** Read something; what can't be read is `otherwise`, unless it has to be. @throws {ProxyError} `invalid_object`. */
export function orUnknown<T>(read: () => T, otherwise: T, { isStrict }: RuleContext): T {
  if (isStrict) return read();
  try {
    return read();
  } catch (error) {
    if (ProxyError.is(error, "invalid_object")) return otherwise;
    throw error;
  }
}

function spaced(text: string): string {
  return text === "" ? "" : ` ${text}`;
}

/** The opposite of a question. */
export function inverted(test: Test): Test {
  return (packet) => {
    const answer = test(packet);
    return answer === undefined ? undefined : !answer;
  };
}

/** Read a number as C does: decimal, 0x…, or octal after a 0; undefined when it isn't one or has more than 32 bits. */
export function unsigned32(text: string): number | undefined {
  if (!/^(?:0[xX][\da-fA-F]+|0[0-7]*|[1-9]\d*)$/.test(text)) return undefined;
  const value = /^0\d/.test(text) ? Number.parseInt(text, 8) : Number(text);
  return value <= 0xffff_ffff ? value : undefined;
}

/** Read a number with up to 32 bits. @throws {ProxyError} `invalid_object` when it isn't one. */
export function mustBeNumber(text: string, max: number = 0xffff_ffff): number {
  const number = unsigned32(text);
  if (number === undefined || number > max) throw badRule(`bad number ${text}`);
  return number;
}

/** Read a list of words; gives those that were named, in the order of `known`. @throws {ProxyError} `invalid_object`. */
export function readWords(text: string, known: readonly string[]): readonly string[] {
  const words = text.toUpperCase().split(",");
  const bad = words.find((word) => !known.includes(word));
  if (bad !== undefined) throw badRule(`bad word "${bad}"`);
  return known.filter((word) => words.includes(word));
}

/** Write a number as `0x…`. */
export function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
