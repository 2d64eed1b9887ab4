import type { Fronts, Traffic } from "@turnout/client/sockets";
import type { BackendMetric } from "@turnout/core/backend";

/** What this backend counts for operators. */
export function numbersOf(fronts: Fronts, { seen }: Traffic): readonly BackendMetric[] {
  const metric = (kind: BackendMetric["kind"], name: string, help: string, value: number): BackendMetric => ({
    name: `turnout_userspace_${name}`,
    help,
    kind,
    value,
  });
  return [
    metric("gauge", "connections", "TCP connections that are open or being opened.", fronts.connections),
    metric("gauge", "udp_sessions", "UDP clients that have a socket to an endpoint.", fronts.sessions.size),
    metric("counter", "connections_total", "TCP connections that were accepted.", seen.connections),
    metric("counter", "udp_sessions_total", "UDP sessions that were begun.", seen.sessions),
    metric("counter", "connections_refused_total", "TCP connections over a limit.", seen.refused),
    metric("counter", "dial_failures_total", "Endpoints that could not be reached when they were dialled.", seen.failedDials),
  ];
}
