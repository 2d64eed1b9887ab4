import { wallMs, type ClockReading, type IPFamily, type Log } from "@turnout/core";
import type { Eligibility } from "../../api/eligibility.ts";

/** What one family's sync loop reports about itself; times by the clock's `nowMs`. */
export interface SyncProgress {
  /** When the loop was started; it counts as healthy from then on. */
  readonly startedMs: number;
  readonly lastSuccessMs: number | undefined;
  /** Since when a change has been waiting, and nothing of what waits was brought into force. */
  readonly pendingSinceMs: number | undefined;
  /** Why packets don't go by the rules; "": they do. */
  readonly unready: string;
}

/** One family in a health report. */
export interface FamilyHealth {
  readonly lastUpdatedMs: number;
  readonly isHealthy: boolean;
  /** Why packets don't go by the rules; "": they do. */
  readonly unready: string;
}

/** The health of the whole proxy. */
export interface HealthReport {
  readonly isHealthy: boolean;
  readonly lastUpdatedMs: number | undefined;
  readonly families: ReadonlyMap<IPFamily, FamilyHealth>;
}

/** An HTTP answer; of bytes where it is no text. */
export interface Reply<B extends string | Uint8Array = string> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: B;
}

/** An answer of either kind. */
export type AnyReply = Reply | Reply<Uint8Array>;

/** What an answer may depend on besides the path. */
export interface HttpRequest {
  /** In capitals. */
  readonly method: string;
  /** The Accept header; "" when there is none. */
  readonly accept: string;
  /** The Host header: which name the client asked for; "" when there is none. */
  readonly host: string;
  /** Where the request comes from, as the socket tells; "" when it is gone. */
  readonly remoteAddress: string;
  readonly query: URLSearchParams;
}

const JSON_HEADERS: Readonly<Record<string, string>> = { "Content-Type": "application/json", "X-Content-Type-Options": "nosniff" };

/**
 * Judge the sync loops: a family is unhealthy when a change has waited for two sync periods. While a backend carries out a long
 * plan turn by turn it is healthy: to restart it would begin that plan anew.
 *
 * Edges: families that never started are absent and count for nothing; no family at all is healthy.
 * @source kube-proxy healthcheck/proxy_health.go
 */
export function judge(progress: ReadonlyMap<IPFamily, SyncProgress>, syncPeriodMs: number, nowMs: number): HealthReport {
  const families = new Map<IPFamily, FamilyHealth>();
  for (const [family, { startedMs, lastSuccessMs, pendingSinceMs, unready }] of progress) {
    const isHealthy = pendingSinceMs === undefined || nowMs - pendingSinceMs < 2 * syncPeriodMs;
    families.set(family, { lastUpdatedMs: lastSuccessMs ?? startedMs, isHealthy, unready });
  }
  const all = [...families.values()];
  const lastUpdatedMs = all.length === 0 ? undefined : Math.max(...all.map((family) => family.lastUpdatedMs));
  return { isHealthy: all.every((family) => family.isHealthy), lastUpdatedMs, families };
}

function goTime(ms: number | undefined): string {
  return ms === undefined ? "0001-01-01T00:00:00Z" : new Date(ms).toISOString();
}

/**
 * Answer /healthz or /livez.
 *
 * Edges: `eligibility` undefined is /livez. `healthy` in the body is about syncing alone, the status code about both;
 * with 200 the top `lastUpdated` is the current time, a compatibility upstream keeps.
 * @source KEP-3836; kube-proxy healthcheck/proxy_health.go
 */
export function healthReply(report: HealthReport, eligibility: Eligibility | undefined, clock: ClockReading): Reply {
  const time = (atMs: number | undefined): string => goTime(atMs === undefined ? undefined : wallMs(clock, atMs));
  const isOK = report.isHealthy && (eligibility?.isEligible ?? true);
  const status = [...report.families].map(([family, health]) => [
    family,
    { lastUpdated: time(health.lastUpdatedMs), healthy: health.isHealthy },
  ]);
  const body = {
    lastUpdated: time(isOK ? clock.nowMs() : report.lastUpdatedMs),
    currentTime: time(clock.nowMs()),
    ...(eligibility === undefined ? {} : { nodeEligible: eligibility.isEligible }),
    healthy: report.isHealthy,
    status: Object.fromEntries(status) as Record<string, unknown>,
  };
  return jsonReply(isOK ? 200 : 503, body);
}

/** Say why /healthz or /livez answers 503; "" when nothing speaks for it. */
export function unhealthyReason(report: HealthReport, eligibility: Eligibility | undefined): string {
  const late = [...report.families].filter(([, { isHealthy }]) => !isHealthy).map(([family]) => family);
  const waiting = late.length === 0 ? [] : [`a change has waited for two sync periods (${late.join(", ")})`];
  return [...waiting, ...(eligibility?.reason ? [eligibility.reason] : [])].join("; ");
}

/** What a probe's path answers, and why it isn't 200. */
export interface Verdict {
  readonly reply: Reply;
  /** "" for 200. */
  readonly reason: string;
}

/**
 * Answer /readyz: 200 once the first sync of each family is done, and while its table is on the host. A change that waits, a source that is away, a node
 * that load balancers avoid and Services that the host refuses change nothing.
 */
export function readyVerdict(report: HealthReport, clock: ClockReading): Verdict {
  const unready = [...report.families]
    .filter(([, { unready: why }]) => why !== "")
    .map(([family, { unready: why }]) => `${family}: ${why}`);
  const families = [...report.families].map(([family, { unready: why }]) => [family, why === "" ? "ready" : why] as const);
  const body = { currentTime: goTime(wallMs(clock)), ready: unready.length === 0, status: Object.fromEntries(families) };
  return { reply: jsonReply(unready.length === 0 ? 200 : 503, body), reason: unready.join("; ") };
}

/**
 * Make the function that answers a probe's path, e.g. `/healthz`. It logs when the answer changes to 503, with the reason, and back.
 * @param isOKFirst before the first request the answer counts as 200; else 503 is logged only after a 200
 */
export function probe(path: string, log: Log, judgeNow: () => Verdict, isOKFirst = true): () => Reply {
  let wasOK = isOKFirst ? true : undefined;
  return () => {
    const { reply, reason } = judgeNow();
    const isOK = reply.status === 200;
    if (isOK && wasOK === false) log.info(`${path} answers 200 again`);
    if (!isOK && wasOK === true) log.warn(`${path} answers ${reply.status}`, { reason });
    if (isOK || wasOK !== undefined) wasOK = isOK;
    return reply;
  };
}

/** Answer with JSON. */
export function jsonReply(status: number, body: unknown): Reply {
  return { status, headers: JSON_HEADERS, body: JSON.stringify(body) };
}

/**
 * Answer a Service's health check node port.
 *
 * Shape: exactly upstream's: JSON indented with tabs, no newline at the end, the weight in a header.
 * @source rules; kube-proxy healthcheck/service_health.go
 */
export function serviceHealthReply(namespace: string, name: string, localEndpoints: number, isProxyHealthy: boolean): Reply {
  const body = { service: { namespace, name }, localEndpoints, serviceProxyHealthy: isProxyHealthy };
  return {
    status: localEndpoints > 0 && isProxyHealthy ? 200 : 503,
    headers: { ...JSON_HEADERS, "X-Load-Balancing-Endpoint-Weight": String(localEndpoints) },
    body: JSON.stringify(body, undefined, "\t"),
  };
}
