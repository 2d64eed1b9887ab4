import type { IPFamily } from "@turnout/core";
import type { Finding } from "./finding.ts";
import { offendedByKind } from "./offended.ts";

/** A finding without where it was found. */
export type Found = Omit<Finding, "scenario" | "step" | "rules" | "details"> & Partial<Pick<Finding, "rules" | "details">>;

/** Takes what is wrong: what was tried, what should come of it, and what came. */
export type Complain = (what: string, expected: string, got: string, details?: readonly string[]) => void;

/** Where somebody looks: what a finding is filed under. */
export interface Checkpoint {
  readonly scenario: string;
  readonly step: string;
  readonly rules: readonly string[];
}

/** When to stop looking, and who is told where. */
export interface FindingsOptions {
  /** Stop after as many findings; default: never. */
  readonly maxFindings?: number;
  /** Stop after such a finding; default: never. */
  readonly isLookedFor?: (finding: Finding) => boolean;
  /** Told where the kit looks before it does. */
  readonly onCheckpoint?: (place: Checkpoint) => void;
}

/** Collects findings. */
export class Findings {
  readonly list: Finding[] = [];
  /** What wasn't looked at, each with the reason. */
  readonly notAsked: Set<string> = new Set();
  readonly #options: FindingsOptions;
  #isFound = false;
  #checkpoint: Checkpoint = { scenario: "", step: "", rules: [] };

  constructor(options: FindingsOptions = {}) {
    this.#options = options;
  }

  /** Where somebody looks now. */
  get checkpoint(): Checkpoint {
    return this.#checkpoint;
  }

  set checkpoint(place: Checkpoint) {
    this.#checkpoint = place;
    this.#options.onCheckpoint?.(place);
  }

  /** As many as were asked for, or the one that was looked for: nobody needs to look further. */
  get isFull(): boolean {
    return this.#isFound || this.list.length >= (this.#options.maxFindings ?? Number.POSITIVE_INFINITY);
  }

  /** Add one; where it says no rules it offends against those of its kind, or of the place. */
  add(found: Found): void {
    const rules = found.rules ?? offendedByKind(found.kind) ?? this.#checkpoint.rules;
    if (this.isFull) return;
    const finding: Finding = { ...this.#checkpoint, details: [], ...found, rules };
    this.list.push(finding);
    this.#isFound = this.#options.isLookedFor?.(finding) === true;
  }

  /** Note what isn't looked at, and why, in one text. */
  leaveOut(what: string): void {
    this.notAsked.add(what);
  }

  /** Note that something threw. */
  threw(what: string, family: IPFamily, error: unknown, more: readonly string[] = []): void {
    const stack =
      error instanceof Error && error.stack !== undefined
        ? error.stack
            .split("\n")
            .slice(1, 4)
            .map((line) => line.trim())
        : [];
    const got = error instanceof Error ? error.message : String(error);
    this.add({ kind: "error", family, what, expected: "no error", got, details: [...stack, ...more] });
  }
}
