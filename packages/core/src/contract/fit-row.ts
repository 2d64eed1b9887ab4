import type { Capabilities } from "./capabilities.ts";
import type { Destination, Endpoint, ServicePort } from "../model/rows.ts";
import type { Issue } from "../model/api-objects.ts";
import { listedNames } from "../model/names.ts";

const ADDRESSES_SHOWN = 20;

/**
 * Reduce a row to what a backend can do, failing closed.
 *
 * Edges: a protocol it doesn't know: the row is left out; no source ranges: such destinations are left out; no
 * affinity: the row goes without; no origins: only the rule for anyone stays; no different ports: the smaller part of a pool is left out. Each is
 * an issue where somebody is sent elsewhere, or nowhere.
 */
export function fitRow(
  row: ServicePort,
  capabilities: Capabilities,
): { readonly row: ServicePort | undefined; readonly issues: readonly Issue[] } {
  const object = `Service port ${row.key}`;
  const protocol = capabilities[row.name.protocol];
  if (protocol !== true)
    return { row: undefined, issues: [{ object, what: `left out, no ${row.name.protocol}: ${protocol}`, hint: "use another backend" }] };
  const issues: Issue[] = [];
  let fitted = row;
  if (row.affinitySeconds !== undefined && capabilities.sessionAffinity !== true) {
    issues.push({ object, what: `programmed without session affinity: ${capabilities.sessionAffinity}`, hint: "use another backend" });
    fitted = { ...fitted, affinitySeconds: undefined };
  }
  const ranged = row.destinations.filter(({ sourceRanges }) => sourceRanges !== undefined);
  if (ranged.length > 0 && capabilities.sourceRanges !== true) {
    const addresses = listedNames(
      ranged.map(({ address }) => address),
      ADDRESSES_SHOWN,
    );
    issues.push({ object, what: `left out, no source ranges: ${addresses}: ${capabilities.sourceRanges}`, hint: "use another backend" });
    fitted = { ...fitted, destinations: row.destinations.filter(({ sourceRanges }) => sourceRanges === undefined) };
  }
  if (capabilities.origins !== true) fitted = withoutOrigins(fitted, capabilities.origins, object, issues);
  if (capabilities.endpointPorts !== true) fitted = withOnePort(fitted, capabilities.endpointPorts, object, issues);
  return { row: fitted, issues };
}

/** Leave to each destination what holds for anyone. Who is only masqueraded otherwise is not worth an issue. */
function withoutOrigins(row: ServicePort, why: string, object: string, issues: Issue[]): ServicePort {
  const destinations = row.destinations.map((destination): Destination => {
    const rules = destination.rules.filter(({ from }) => from === "anyone" || from === "outsideSourceRanges");
    return { ...destination, rules };
  });
  const isMisled = row.destinations.some(({ rules }) => {
    const last = rules.at(-1);
    return rules.some(({ from, to }) => from !== "outsideSourceRanges" && to !== last?.to);
  });
  if (isMisled)
    issues.push({
      object,
      what: `pods and this host are treated as clients outside: ${why}`,
      hint: "use its cluster IP inside the cluster",
    });
  return { ...row, destinations };
}

/** Leave in each pool the endpoints of one port. */
function withOnePort(row: ServicePort, why: string, object: string, issues: Issue[]): ServicePort {
  const [cluster, local] = [ofCommonPort(row.cluster, row.endpoints), ofCommonPort(row.local, row.endpoints)];
  if (cluster.length === row.cluster.length && local.length === row.local.length) return row;
  issues.push({
    object,
    what: `endpoints left out, they have different ports: ${why}`,
    hint: "give all pods of the Service the same port",
  });
  return { ...row, cluster, local };
}

/** Choose the indexes of endpoints that have the most common port; of two as common, the smaller. */
function ofCommonPort(pool: readonly number[], endpoints: readonly Endpoint[]): readonly number[] {
  const byPort = Map.groupBy(pool, (index) => endpoints[index]?.port ?? 0);
  if (byPort.size < 2) return pool;
  const sorted = [...byPort].toSorted(([a, some], [b, others]) => others.length - some.length || a - b);
  return sorted[0]?.[1] ?? pool;
}
