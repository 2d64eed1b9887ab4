import { type ClockReading, type IPFamily, type Issue, type NodeSettings, type ProxyError, wallMs } from "@turnout/core";
import type { RuleSettings } from "./rule-settings.ts";
import { readyVerdict, unhealthyReason } from "../health/health.ts";
import type { FamilyView, ExternalChange, OtherProxy, ProxyView } from "./proxy-view.ts";
import type { NotInForce } from "../health/not-in-force.ts";
import type { LatencySummary } from "./recent-latencies.ts";
import type { CountedRows, RowCounts } from "./service-counts.ts";

/** Of each list that may be long so many are told, and how many there are. */
const REPORTED_MAX = 20;

/** The first of many. */
export interface Bounded<T> {
  readonly count: number;
  readonly first: readonly T[];
}

/** Something the host refuses. Times in ms since the epoch, here and below. */
export interface RefusalStatus {
  /** The object, e.g. `element 10.96.0.10 . tcp . 80`; absent: all of a row, which is kept as it was. */
  readonly object?: string;
  readonly rows: readonly string[];
  /** What failed, and what to do about it where that is known. */
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string };
  readonly sinceMs: number;
}

/** The busiest Service ports, and when the dataplane was read; absent: it is being read for the first time. */
export interface CountedStatus extends Bounded<RowCounts> {
  readonly readMs?: number;
}

/** One family in a proxy's status. */
export interface FamilyStatus {
  readonly family: IPFamily;
  readonly isHealthy: boolean;
  readonly services: number;
  /** Service ports. */
  readonly rows: number;
  /** Service ports with an address, but without an endpoint to send anybody to. */
  readonly rowsWithoutEndpoints: number;
  readonly endpoints: number;
  /** Known service ranges; absent: none is known. */
  readonly serviceRanges?: readonly string[];
  /** Services that are served at an external IP; absent: an older proxy doesn't tell. */
  readonly servicesWithExternalIPs?: number;
  /** Of the host, in force. */
  readonly objects: number;
  /** How many came, the first one among them, which says everything; absent: an older proxy doesn't tell. */
  readonly changeSets?: number;
  /** Absent: the first sync isn't in force. */
  readonly appliedSinceMs?: number;
  readonly lastSyncMs?: number;
  /** Absent: nothing waits. */
  readonly waiting?: { readonly sinceMs: number; readonly rows: Bounded<string>; readonly error?: string };
  readonly refused: Bounded<RefusalStatus>;
  readonly externalChange?: ExternalChange;
  /** Absent: none was seen. */
  readonly otherProxies?: readonly OtherProxy[];
  /** Absent: nothing changed since the first sync. */
  readonly latency?: LatencySummary;
  /** The busiest Service ports; absent: nothing is counted. */
  readonly counted?: CountedStatus;
}

/** What `/turnout/status` answers. Members are only added; absent means that there is nothing to tell. */
export interface ProxyStatus {
  readonly kind: "proxy";
  readonly version: string;
  readonly backend: string;
  readonly residence: "kernel" | "process";
  /** Of tools and kernel. */
  readonly versions: Readonly<Record<string, string>>;
  readonly node: string;
  readonly source?: string;
  /** What decides about rules besides objects: how pods are told, and so on; absent: not known yet. */
  readonly settings?: NodeSettings;
  /** What else does, such as the backend's options; absent: an older proxy doesn't tell. */
  readonly ruleSettings?: RuleSettings;
  /** Parts of the source that can't be followed now, and why. */
  readonly sourceProblems: Readonly<Record<string, string>>;
  /** What `turnout_not_in_force` counts; absent: an older proxy doesn't report it. */
  readonly notInForce?: NotInForce;
  readonly startedMs: number;
  readonly nowMs: number;
  /** `unready`: why `/readyz` answers 503; absent: it answers 200. */
  readonly health: { readonly isHealthy: boolean; readonly isEligible: boolean; readonly reason: string; readonly unready?: string };
  readonly families: readonly FamilyStatus[];
  /** What was reported about API objects and still holds. */
  readonly issues: Bounded<Issue>;
}

/** Say how a proxy is. Reads only; costs what there are rows. */
export async function statusOf(proxy: ProxyView, signal: AbortSignal): Promise<ProxyStatus> {
  const { version, module, host, nodeName, ruleSettings, source, sources, startedMs, clock, health, eligibility, families } = proxy;
  const { reason: readiness } = readyVerdict(health, clock);
  const settings = families.map(({ context }) => context?.node.settings).find((one) => one !== undefined);
  return {
    kind: "proxy",
    version,
    backend: module.name,
    residence: module.residence,
    versions: host.versions,
    node: nodeName,
    ...(source === undefined ? {} : { source }),
    ...(settings === undefined ? {} : { settings }),
    ruleSettings,
    sourceProblems: Object.fromEntries([...sources].filter(([, problem]) => problem !== "")),
    notInForce: proxy.notInForce(),
    startedMs: wallMs(clock, startedMs),
    nowMs: wallMs(clock),
    health: {
      isHealthy: health.isHealthy,
      isEligible: eligibility.isEligible,
      reason: unhealthyReason(health, eligibility),
      ...(readiness === "" ? {} : { unready: readiness }),
    },
    families: await Promise.all(
      families.map(async (family) =>
        familyStatus(family, health.families.get(family.family)?.isHealthy ?? true, await family.counted(signal), clock),
      ),
    ),
    issues: distinctIssues(families.map((family) => family.issues())),
  };
}

function familyStatus(view: FamilyView, isHealthy: boolean, counted: CountedRows | undefined, clock: ClockReading): FamilyStatus {
  const { family, rows, objectCount, appliedSinceMs, lastSyncMs, pendingSinceMs, lastError, externalChange, latency } = view;
  const services = new Set<string>();
  const withExternalIPs = new Set<string>();
  let endpoints = 0;
  let rowsWithoutEndpoints = 0;
  for (const { name, cluster, local, destinations } of rows.values()) {
    const service = `${name.namespace}/${name.name}`;
    services.add(service);
    if (destinations.some(({ kind }) => kind === "externalIP")) withExternalIPs.add(service);
    endpoints += Math.max(cluster.length, local.length);
    if (cluster.length + local.length === 0 && destinations.length > 0) rowsWithoutEndpoints += 1;
  }
  const serviceRanges = view.context?.node.serviceCIDRs ?? [];
  const waiting = {
    sinceMs: wallMs(clock, pendingSinceMs ?? 0),
    rows: bounded(pendingSinceMs === undefined ? [] : view.waitingRows),
    ...(lastError === undefined ? {} : { error: lastError.message }),
  };
  const refused = view.refusals.map(({ object, rows: concerned, error, sinceMs }): RefusalStatus => {
    return { ...(object === undefined ? {} : { object }), rows: concerned, error: errorStatus(error), sinceMs: wallMs(clock, sinceMs) };
  });
  const otherProxies = view.otherProxies.map((other) => ({ ...other, sinceMs: wallMs(clock, other.sinceMs) }));
  return {
    family,
    isHealthy,
    services: services.size,
    rows: rows.size,
    rowsWithoutEndpoints,
    endpoints,
    ...(serviceRanges.length === 0 ? {} : { serviceRanges }),
    servicesWithExternalIPs: withExternalIPs.size,
    objects: objectCount,
    changeSets: view.changeSets,
    ...(appliedSinceMs === undefined ? {} : { appliedSinceMs: wallMs(clock, appliedSinceMs) }),
    ...(lastSyncMs === undefined ? {} : { lastSyncMs: wallMs(clock, lastSyncMs) }),
    ...(pendingSinceMs === undefined ? {} : { waiting }),
    refused: bounded(refused),
    ...(externalChange === undefined ? {} : { externalChange: { ...externalChange, atMs: wallMs(clock, externalChange.atMs) } }),
    ...(otherProxies.length === 0 ? {} : { otherProxies }),
    ...(latency === undefined ? {} : { latency }),
    ...(counted === undefined ? {} : { counted: countedStatus(counted, clock) }),
  };
}

function countedStatus({ busiest, leftOut, readMs }: CountedRows, clock: ClockReading): CountedStatus {
  return {
    count: busiest.length + leftOut,
    first: busiest.slice(0, REPORTED_MAX),
    ...(readMs === undefined ? {} : { readMs: wallMs(clock, readMs) }),
  };
}

function errorStatus({ code, message, hint }: ProxyError): RefusalStatus["error"] {
  return { code, message, ...(hint === undefined ? {} : { hint }) };
}

/** Issues of several sources: what both families, or two nodes, say of one object is one issue. */
export function distinctIssues(sources: readonly Iterable<Issue>[]): Bounded<Issue> {
  const issues = new Map<string, Issue>();
  for (const source of sources) for (const { object, what, hint } of source) issues.set(`${object}\n${what}`, { object, what, hint });
  return bounded([...issues.values()]);
}

/** The first of many, and how many there are. */
export function bounded<T>(all: readonly T[]): Bounded<T> {
  return { count: all.length, first: all.slice(0, REPORTED_MAX) };
}
