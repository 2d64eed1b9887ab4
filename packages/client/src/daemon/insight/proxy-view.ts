import type {
  Backend,
  BackendModule,
  Capabilities,
  ClockReading,
  Context,
  IPFamily,
  Issue,
  KernelObject,
  ProbedHost,
  Refusal,
  ServicePort,
} from "@turnout/core";
import type { Eligibility } from "../../api/eligibility.ts";
import type { RuleSettings } from "./rule-settings.ts";
import type { HealthReport } from "../health/health.ts";
import type { NotInForce } from "../health/not-in-force.ts";
import type { RecentChanges } from "./recent-changes.ts";
import type { WhyHelp } from "./why-help.ts";
import type { LatencySummary } from "./recent-latencies.ts";
import type { CountedRows } from "./service-counts.ts";

/** What somebody else did to our objects, found by comparing. */
export interface ExternalChange {
  /** By the clock's `nowMs`. */
  readonly atMs: number;
  /** Who it was, as far as the host tells. */
  readonly who: string;
  /** How many objects were otherwise than we had left them. */
  readonly objects: number;
}

/** Rules of another service proxy that are in force beside ours. */
export interface OtherProxy {
  /** The backend in whose dataplane they are. */
  readonly backend: string;
  /** For people, e.g. `table ip kube-proxy`. */
  readonly what: string;
  /** When they were seen first. */
  readonly sinceMs: number;
}

/** One family of a running proxy, to look at and not to touch. */
export interface FamilyView {
  readonly family: IPFamily;
  /** What programs the host; `observe` reads it, and nothing else of it is for those who only look. */
  readonly backend: Backend<unknown, KernelObject, unknown>;
  /** The node and the host's facts, as rows are rendered with; undefined: the node isn't known yet. */
  readonly context: Context<unknown> | undefined;
  /** Rows as they should be in force, reduced to what the backend can do. */
  readonly rows: ReadonlyMap<string, ServicePort>;
  /** How many objects the host holds of ours, as far as is known. */
  readonly objectCount: number;
  /** It had a Service at some time since the start. */
  readonly hadServices: boolean;
  /** When the first sync was in force; undefined: it isn't. */
  readonly appliedSinceMs: number | undefined;
  /** When everything that was wanted was last in force. */
  readonly lastSyncMs: number | undefined;
  /** Since when a change has been waiting; undefined: none is. */
  readonly pendingSinceMs: number | undefined;
  /** Rows that are not in force as they should be, and that the host has not refused. */
  readonly waitingRows: readonly string[];
  /** What the last sync failed with. */
  readonly lastError: Error | undefined;
  /** What the host refuses now. */
  readonly refusals: readonly Refusal[];
  /** How many change sets came, the first one among them, which says everything. */
  readonly changeSets: number;
  /** Who changed our objects last; undefined: nobody did since the start. */
  readonly externalChange: ExternalChange | undefined;
  /** Which other proxies have rules in force here, as far as somebody looked. */
  readonly otherProxies: readonly OtherProxy[];
  /** How long changes take. */
  readonly latency: LatencySummary | undefined;
  /** The rows that the dataplane counted most for, as read within the last seconds; undefined: nothing is counted. */
  counted(signal: AbortSignal): Promise<CountedRows | undefined>;
  /** What was reported about API objects and still holds, as far as this process knows. */
  issues(): Iterable<Issue>;
}

/** A running proxy, to look at and not to touch: what `/turnout/…` is answered from. */
export interface ProxyView {
  /** Turnout's. */
  readonly version: string;
  readonly module: Pick<BackendModule, "name" | "residence" | "nodePortAddressesDefault" | "countingOptions">;
  readonly nodeName: string;
  readonly ruleSettings: RuleSettings;
  /** Where Services come from, e.g. `kube`; undefined: nobody said. */
  readonly source: string | undefined;
  /** What ails parts of the source, "" where it is followed. */
  readonly sources: ReadonlyMap<string, string>;
  /** How much is not in force. */
  readonly notInForce: () => NotInForce;
  /** What the probe found. */
  readonly host: Pick<ProbedHost<unknown>, "versions" | "variants"> & { readonly capabilities: Capabilities };
  /** By the clock's `nowMs`. */
  readonly startedMs: number;
  readonly families: readonly FamilyView[];
  /** What changed last; nothing is noted where nobody can look at it. */
  readonly changes: RecentChanges;
  readonly health: HealthReport;
  readonly eligibility: Eligibility;
  /** By whose `nowMs` all times of this are, unless they say otherwise. */
  readonly clock: ClockReading;
  /** This host's addresses as they are now. */
  readonly hostAddresses: (family: IPFamily) => readonly string[];
  /** Helps to explain packets; absent: nothing does but what is here. */
  readonly why?: WhyHelp | undefined;
}
