import type { IPFamily } from "@turnout/core";
import type { Finding } from "./finding.ts";
import { offendedByKind } from "./offended.ts";

/** A finding without where it was found. */
export type Found = Omit<Finding, "scenario" | "step" | "rules"> & { readonly rules?: readonly string[] };

/** Where somebody looks: what a finding is filed under. */
export interface Place {
  readonly scenario: string;
  readonly step: string;
  readonly rules: readonly string[];
}

/** Collects findings. */
export class Findings {
  readonly list: Finding[] = [];
  readonly #max: number;
  readonly #onPlace: ((place: Place) => void) | undefined;
  #place: Place = { scenario: "", step: "", rules: [] };

  /** @param onPlace told where somebody looks, whenever that changes */
  constructor(max: number = Number.POSITIVE_INFINITY, onPlace?: (place: Place) => void) {
    this.#max = max;
    this.#onPlace = onPlace;
  }

  /** Where somebody looks now. */
  get place(): Place {
    return this.#place;
  }

  set place(place: Place) {
    this.#place = place;
    this.#onPlace?.(place);
  }

  /** As many as were asked for. */
  get isFull(): boolean {
    return this.list.length >= this.#max;
  }

  /** Add one; where it says no rules it offends against those of its kind, or of the place. */
  add(found: Found): void {
    const rules = found.rules ?? offendedByKind(found.kind) ?? this.#place.rules;
    if (!this.isFull) this.list.push({ ...this.#place, ...found, rules });
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
