import { ProxyError } from "@turnout/core";
import type { CIDR, IPFamily } from "@turnout/core";
import type { Action, Test } from "../../rules/rule.ts";

/** A value a rule compares with, and whether it must not be it. */
export interface Wanted<T> {
  readonly value: T;
  readonly isInverted: boolean;
}

/** A match of a rule. */
export interface MatchPart {
  /** As saved, e.g. `-m mark --mark 0x1`. */
  readonly text: string;
  readonly tests: readonly Test[];
  /** The protocol that its rule must have, not inverted. */
  readonly protocol?: string;
  /** The list of clients it keeps or asks. */
  readonly recent?: string;
  /** The set it asks. */
  readonly set?: string;
  /** The kernel has no such thing. */
  readonly isMissing?: boolean;
}

/** What a rule does, where it isn't a jump to a chain. */
export interface TargetPart {
  /** As saved, e.g. `MARK --set-xmark 0x4000/0x4000`. */
  readonly text: string;
  readonly action: Action;
  readonly protocol?: string;
  readonly tables?: readonly string[];
  /** Built-in chains from which packets may come to it. */
  readonly hooks?: readonly string[];
}

/** A rule that was understood: how it is written, what it asks of a packet, what it does. */
export interface IptablesRule {
  /** As `iptables-save` prints it, without `-A CHAIN`: two rules are the same when their texts are. */
  readonly text: string;
  readonly tests: readonly Test[];
  readonly actions: readonly Action[];
  readonly source?: Wanted<CIDR> | undefined;
  readonly destination?: Wanted<CIDR> | undefined;
  readonly inputLink?: Wanted<string> | undefined;
  readonly outputLink?: Wanted<string> | undefined;
  /** `tcp`, …, or a number. */
  readonly protocol?: Wanted<string> | undefined;
  readonly matches: readonly MatchPart[];
  readonly target?: TargetPart | undefined;
  /** The chain it jumps or goes to. */
  readonly chain?: string | undefined;
  readonly isGoto: boolean;
}

/** What rules are read for. */
export interface RuleContext {
  readonly family: IPFamily;
  /**
   * Refuse what isn't known, and what the tools refuse. False: what was printed by a tool is read, and what of it isn't known can't be judged.
   */
  readonly isStrict: boolean;
  /** The family of a set's addresses; undefined: there is no such set. Absent: sets aren't looked for. */
  readonly familyOfSet?: (name: string) => IPFamily | "any" | undefined;
}

/** Refuse a rule, or a part of one. */
export function badRule(message: string): ProxyError {
  return new ProxyError("invalid_object", message);
}
