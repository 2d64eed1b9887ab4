import { hostPort } from "../../model/addresses.ts";
import { isEqual } from "../../model/equal.ts";
import type { Destination, ServicePort } from "../../model/rows.ts";
import type { FlowFilter } from "../../contract/world.ts";

/** A row before and after a sync; undefined: it did not or does not exist. */
export interface RowChange {
  readonly before: ServicePort | undefined;
  readonly after: ServicePort | undefined;
}

/**
 * Say which connections the kernel must forget after a batch of row changes.
 *
 * Edges: a destination that moved from one row to another is judged by its new row alone, so flows to endpoints both
 * rows share live on.
 */
export function flowsToForget(changes: Iterable<RowChange>): readonly FlowFilter[] {
  const list = [...changes].filter(({ before, after }) => (after ?? before)?.name.protocol === "UDP");
  const owned = new Set(list.flatMap(({ after }) => (after?.destinations ?? []).map(destinationKey)));
  const former = formerEndpoints(list);
  return list.flatMap((change) => [...staleFlows(change, former), ...flowsOfGivenUp(change, owned)]);
}

/** Where rows answered, answer, or are about to: what flows there are judged by changes with them. Keys of {@link destinationKey}, UDP alone. */
export function* changingDestinations(changes: Iterable<RowChange>): Iterable<string> {
  for (const { before, after } of changes) {
    if ((after ?? before)?.name.protocol !== "UDP") continue;
    for (const row of [before, after]) for (const destination of row?.destinations ?? []) yield destinationKey(destination);
  }
}

/** Name a destination, of rows or of filters. */
export function destinationKey({ address, port }: Pick<Destination, "address" | "port">): string {
  return `${address} ${port}`;
}

/**
 * Flows to what the row answers on that are answered by something else than an endpoint that still serves.
 *
 * Edges: an endpoint that is ready or serving stays, whatever the policies. A cluster, external or load-balancer IP is ours
 * altogether; on a node port without endpoints only flows to endpoints of rows that had it go, the rest never were ours.
 * An unchanged destination gives nothing; a new one also frees clients that were talking into the void before it existed.
 * @source kube-proxy pkg/proxy/conntrack/cleanup.go; k/k#139628, #122740; rules
 */
function staleFlows({ before, after }: RowChange, former: ReadonlyMap<string, readonly string[]>): readonly FlowFilter[] {
  const keep = servingEndpoints(after);
  const isSame = isEqual(servingEndpoints(before), keep);
  const had = destinationsOf(before);
  const filters: FlowFilter[] = [];
  for (const destination of after?.destinations ?? []) {
    if (isSame && had.has(destinationKey(destination))) continue;
    const { address, port } = destination;
    const only = former.get(destinationKey(destination)) ?? [];
    if (address !== "" || keep.length > 0) filters.push({ protocol: "UDP", address, port, keep });
    else if (only.length > 0) filters.push({ protocol: "UDP", address, port, keep, only });
  }
  return filters;
}

/** By node port: the endpoints of the rows that had it. A port that is renamed is another row. */
function formerEndpoints(changes: readonly RowChange[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const { before } of changes) {
    for (const destination of before?.destinations ?? []) {
      if (destination.address === "") found.set(destinationKey(destination), endpointsOf(before));
    }
  }
  return found;
}

/**
 * Flows to destinations that the row gave up, as far as its endpoints answered them.
 * @source k/k#141371; rules
 */
function flowsOfGivenUp({ before, after }: RowChange, owned: ReadonlySet<string>): readonly FlowFilter[] {
  const only = endpointsOf(before);
  if (before === undefined || only.length === 0) return [];
  const kept = destinationsOf(after);
  return before.destinations
    .filter((destination) => !kept.has(destinationKey(destination)) && !owned.has(destinationKey(destination)))
    .map(({ address, port }) => ({ protocol: "UDP", address, port, keep: [], only }));
}

function endpointsOf(row: ServicePort | undefined): readonly string[] {
  return row === undefined ? [] : row.endpoints.map(({ ip, port }) => hostPort(ip, port));
}

function servingEndpoints(row: ServicePort | undefined): readonly string[] {
  if (row === undefined) return [];
  return row.endpoints.filter(({ ready, serving }) => ready || serving).map(({ ip, port }) => hostPort(ip, port));
}

/** Keys of {@link destinationKey}. */
function destinationsOf(row: ServicePort | undefined): ReadonlySet<string> {
  return new Set(row?.destinations.map(destinationKey));
}
