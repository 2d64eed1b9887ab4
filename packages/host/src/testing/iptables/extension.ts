import type { IPFamily } from "@turnout/core";
import { usage } from "./refusal.ts";
import type { SetLookup } from "../set-lookup.ts";
import type { Hook, TableName } from "./table-names.ts";
import type { Walk } from "./walk.ts";

/** An option of a match or target, without its dashes. */
export interface OptionSpec {
  readonly name: string;
  /** Another word for it. */
  readonly alias?: string;
  /** Absent: it takes a value. */
  readonly isFlag?: boolean;
  /** It takes a second value, and this is said where it isn't there; both are given with a blank between. */
  readonly second?: string;
  /** What is said of one that is given twice; default: the usual. */
  readonly twice?: string;
  readonly isInvertible?: boolean;
  readonly isRequired?: boolean;
  readonly excludes?: readonly string[];
  /** Options that must be given, too. */
  readonly needs?: readonly string[];
}

/** An option as it was given. */
export interface Given {
  readonly value: string;
  readonly isInverted: boolean;
}

/** The options of one match or target, by name. */
export type GivenOptions = ReadonlyMap<string, Given>;

/** What surrounds a match or target. */
export interface RuleSurroundings {
  readonly family: IPFamily;
  /** `tcp`, …; undefined for all. */
  readonly protocol: string | undefined;
  readonly sets: SetLookup;
}

/** A match that was understood. */
export interface MatchBody {
  readonly name: string;
  /** As saved, e.g. `-m mark --mark 0x1`. */
  readonly text: string;
  /** The protocol that its rule must have, not inverted. */
  readonly protocol?: string;
  /** The list of clients it keeps or asks. */
  readonly recent?: string;
  /** The set it asks. */
  readonly set?: string;
  /** The kernel has no such thing. */
  readonly isMissing?: boolean;
  test(walk: Walk): boolean;
}

/** What a target does with a packet; undefined: on to the next rule. */
export type TargetResult = "accept" | "drop" | "reject" | "return" | undefined;

/** A target that was understood. */
export interface TargetBody {
  /** As saved, e.g. `-j MARK --set-xmark 0x4000/0x4000`. */
  readonly text: string;
  readonly protocol?: string;
  readonly tables?: readonly TableName[];
  /** Built-in chains from which packets may come to it. */
  readonly hooks?: readonly Hook[];
  run(walk: Walk): TargetResult;
}

/** A kind of match or target. */
export interface Extension<Body> {
  readonly name: string;
  readonly options: readonly OptionSpec[];
  /** Make sense of its options. @throws {Refusal}. */
  finish(given: GivenOptions, surroundings: RuleSurroundings): Body;
}

/** Find the option a word without its dashes means. */
export function optionOf({ options }: Extension<unknown>, word: string): OptionSpec | undefined {
  return options.find(({ name, alias }) => name === word || alias === word);
}

/** Note an option. @throws {Refusal} when it may not be given so. */
export function giveOption(extension: string, spec: OptionSpec, given: Given, into: Map<string, Given>): void {
  if (given.isInverted && spec.isInvertible !== true) throw usage(`${extension}: option "--${spec.name}" cannot be inverted.\n`);
  if (into.has(spec.name)) {
    if (spec.twice !== undefined) throw usage(spec.twice);
    const isPort = spec.name === "source-port" || spec.name === "destination-port";
    throw usage(isPort ? `Only one \`--${spec.name}' allowed` : `${extension}: option "--${spec.name}" can only be used once.\n`);
  }
  into.set(spec.name, given);
}

/** Check that an extension's options go together. @throws {Refusal} when not. */
export function checkOptions({ name: extension, options }: Extension<unknown>, given: GivenOptions): void {
  for (const { name, excludes = [], needs = [], isRequired = false } of options) {
    if (!given.has(name)) {
      if (isRequired) throw usage(`${extension}: option "--${name}" must be specified\n`);
      continue;
    }
    for (const other of excludes)
      if (given.has(other)) throw usage(`${extension}: option "--${name}" cannot be used together with "--${other}".\n`);
    for (const other of needs) if (!given.has(other)) throw usage(`${extension}: option "--${name}" also requires "--${other}".\n`);
  }
}

/** The sign of an option that was inverted. */
export function not(given: Given): string {
  return given.isInverted ? "! " : "";
}

/** Read a number as C does: decimal, 0x…, or octal after a 0; undefined when it isn't one or has more than 32 bits. */
export function unsigned32(text: string): number | undefined {
  if (!/^(?:0[xX][\da-fA-F]+|0[0-7]*|[1-9]\d*)$/.test(text)) return undefined;
  const value = /^0\d/.test(text) ? Number.parseInt(text, 8) : Number(text);
  return value <= 0xffff_ffff ? value : undefined;
}

/** Write a number as `0x…`. */
export function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
