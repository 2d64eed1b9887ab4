import type { Shape } from "./workload.ts";

/** What a bench is told. */
export interface CaseContext {
  /** Sizes to run instead of the standard ones. */
  readonly shapes: readonly Shape[] | undefined;
  /** Runs, changes or connects instead of the standard number. */
  readonly runs: number | undefined;
  /** Leave out the sizes that take minutes. */
  readonly isQuick: boolean;
  /** Tells a person what is going on. */
  readonly progress: (text: string) => void;
}

/** A target, and what was measured. */
export interface Goal {
  readonly what: string;
  readonly wanted: string;
  readonly measured: string;
  readonly isMet: boolean;
}

/** What a bench found out: a table for people, and everything it measured. */
export interface CaseResult {
  readonly title: string;
  /** What the numbers are of, in a sentence or two. */
  readonly about: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly targets: readonly Goal[];
  /** Samples as measured; plain data. */
  readonly data: unknown;
}

/** One bench. */
export interface BenchCase {
  readonly name: string;
  readonly about: string;
  /** What this machine must offer. */
  readonly needs: readonly string[];
  run(context: CaseContext): Promise<CaseResult>;
}
