import type { Plain } from "@turnout/core";
import type { Scenario } from "../runner/scenario.ts";
import type { ConformanceReport } from "./finding.ts";

/** What a backend is examined with. */
export interface Examination {
  readonly scenarios: readonly Scenario[];
  /** Options for the backend, by name. */
  readonly backendOptions: Readonly<Record<string, Plain>>;
  /** Random changes besides. */
  readonly histories?: { readonly steps: number; readonly seed: number };
  readonly signal: AbortSignal;
}

/**
 * Plays the kit on a backend whose dataplane is this machine's kernel alone: what its door `./testing` exports in the place of `createFakeHost`.
 *
 * Shape: a report, as of checkBackend and checkHistories; or why this machine can't play it.
 */
export type Examine = (examination: Examination) => Promise<ConformanceReport | { readonly leftOut: string }>;
