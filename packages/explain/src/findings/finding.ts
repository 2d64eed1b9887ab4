import type { IPFamily } from "@turnout/core";

/** Something about a host that an operator should know. */
export interface Finding {
  /** For programs; the same in every version. */
  readonly id: string;
  /** `fault`: packets of Services are lost, or go elsewhere, now; `risk`: they may, or will when something else happens; `note`: nothing is wrong. */
  readonly severity: "fault" | "risk" | "note";
  /** One sentence for people: what happens to packets. */
  readonly what: string;
  /** Where that is seen. */
  readonly because: string;
  /** What mends it: a command, or a sentence. */
  readonly fix: string;
}

/** What is known of the proxy that runs on a host. */
export interface KnownProxy {
  /** Families of which it has Services in force. */
  readonly served: ReadonlySet<IPFamily>;
  /** Its process answers itself: packets of Services are for this host, and are not translated. */
  readonly answersItself: boolean;
  /** Programs of this host need a route to a Service's address before any rule translates it. */
  readonly routesFirst: boolean;
  /** Known service ranges of both families, as CIDRs; empty: unknown. */
  readonly serviceRanges: readonly string[];
}

/** No proxy runs, or none that says what it does. */
export const NO_PROXY: KnownProxy = { served: new Set(), answersItself: false, routesFirst: true, serviceRanges: [] };

const ORDER = ["fault", "risk", "note"] as const;

/** The most serious first; equals stay in their order. Pure. */
export function bySeverity(findings: readonly Finding[]): readonly Finding[] {
  return findings.toSorted((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
}
