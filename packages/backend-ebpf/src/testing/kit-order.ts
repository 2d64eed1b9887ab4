import type { ConformanceReport } from "@turnout/conformance";
import type { Plain } from "@turnout/core/backend";
import type { EbpfWorld } from "../world.ts";

/** What main.ts is to play, as JSON. */
export interface KitOrder {
  /** `checks`: of the host, of recovery and of turns; `scenarios`: those of these names; `histories`: random changes; `test`: that of describeBackend. */
  readonly part:
    | { readonly kind: "checks" }
    | { readonly kind: "scenarios"; readonly names: readonly string[] }
    | { readonly kind: "histories"; readonly seed: number; readonly steps: number; readonly lifeSteps: number }
    | { readonly kind: "test"; readonly name: string };
  /** Default: no bound. */
  readonly maxFindings?: number;
  readonly backendOptions?: Readonly<Record<string, Plain>>;
  /** Programs in the place of those that were built. */
  readonly objectFiles?: Partial<EbpfWorld["objectFiles"]>;
}

/** What main.ts tells, as JSON. */
export interface KitResult extends Pick<ConformanceReport, "findings" | "cells" | "notAsked"> {
  /** Undefined: nothing was asked about them. */
  readonly abilities?: ConformanceReport["abilities"];
  /** How many packets and questions of sockets went through programs. */
  readonly packets: number;
}
