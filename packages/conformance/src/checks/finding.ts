import type { Abilities, IPFamily, Protocol } from "@turnout/core";

/** What kind of thing is wrong. */
export type FindingKind =
  /** A packet met another fate than it should: refused for dropped, other servers, another source address. */
  | "verdict"
  /** An affine client went elsewhere, or was held too long. */
  | "affinity"
  /** A UDP flow was forgotten that should stay, or the other way round. */
  | "flow"
  /** The second sync in a row wanted to change something, or a new process did not recognise what it found. */
  | "not-idempotent"
  /** A history ended elsewhere than a sync from nothing. */
  | "leftover"
  /** cleanup left something, or anything touched what isn't the backend's. */
  | "cleanup"
  /** Two rows want one object in two forms, or a pure function gave two answers. */
  | "contract"
  /** It threw. */
  | "error";

/** One thing a backend does that it should not. */
export interface Finding {
  readonly kind: FindingKind;
  /** Name of the scenario, or `history <seed>`. */
  readonly scenario: string;
  /** The step's words. */
  readonly step: string;
  /** Rules it offends against. */
  readonly rules: readonly string[];
  readonly family: IPFamily;
  readonly protocol?: Protocol;
  /** What was tried, e.g. `client1 → web externalIP`. */
  readonly what: string;
  readonly expected: string;
  readonly got: string;
  /** How it came to that: the packet's way, the plan. */
  readonly details: readonly string[];
}

/** How one rule fares in one family and protocol: how many probes were made, and what was found. */
export interface Cell {
  readonly rule: string;
  readonly family: IPFamily;
  readonly protocol: Protocol;
  readonly probes: number;
  readonly findings: number;
  /** Why the rule wasn't asked about here, e.g. `no SCTP: not in the kernel`; its scenarios may be played all the same, then R-56 counts them. */
  readonly skipped?: string;
}

/** What the kit says of a backend. It conforms when `findings` is empty. */
export interface ConformanceReport {
  readonly backend: string;
  /** What it was found to be able to do, and how it behaves; what its module says where nothing could be played. */
  readonly abilities: Abilities;
  readonly findings: readonly Finding[];
  readonly cells: readonly Cell[];
  /** What wasn't looked at besides the rules that cells say are skipped, each with the reason, e.g. `what a small change writes again: the host has no written()`. */
  readonly notAsked: readonly string[];
}
