import type { Capabilities } from "@turnout/core";
import type { OracleEndpoint } from "./read-endpoints.ts";
import type { OracleNode } from "./read-node.ts";

/** The endpoints of a row that may serve, with the rules that chose them. */
export interface Pools {
  /** For whoever may be sent anywhere; empty only when no endpoint is usable at all (rule R-21). */
  readonly cluster: Pool;
  /** For whoever must stay on this node. */
  readonly local: Pool;
  /** Some endpoint is usable, whether the backend reaches it or not. */
  readonly hasUsable: boolean;
}

/** One pool. */
export interface Pool {
  /** Some endpoint is in it, whether the backend reaches it or not. */
  readonly hasUsable: boolean;
  readonly endpoints: readonly OracleEndpoint[];
  readonly because: readonly string[];
}

/** Decide which endpoints of a row may serve (rules ). */
export function poolsOf(endpoints: readonly OracleEndpoint[], node: OracleNode): Pools {
  const onNode = (endpoint: OracleEndpoint): boolean => node.name !== "" && endpoint.nodeName === node.name;
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  const draining = endpoints.filter(isDraining);
  const localReady = ready.filter(onNode);
  const cluster = ready.length > 0 ? near(ready, node) : poolOf(draining, draining.length > 0 ? ["R-17", "R-18"] : []);
  const local = localReady.length > 0 ? poolOf(localReady) : fallBack(draining.filter(onNode));
  return { cluster, local, hasUsable: cluster.hasUsable };
}

/** Whether an endpoint keeps the flows it has, wherever it is and whatever the policies (rule R-42). */
export function keepsFlows({ ready, serving }: OracleEndpoint): boolean {
  return ready || serving;
}

function isDraining({ ready, serving, terminating }: OracleEndpoint): boolean {
  return !ready && serving && terminating;
}

function fallBack(draining: readonly OracleEndpoint[]): Pool {
  return poolOf(draining, draining.length > 0 ? ["R-18", "R-17"] : []);
}

function poolOf(endpoints: readonly OracleEndpoint[], because: readonly string[] = []): Pool {
  return { endpoints, because, hasUsable: endpoints.length > 0 };
}

/** Rules. */
function near(ready: readonly OracleEndpoint[], node: OracleNode): Pool {
  const sameNode = ready.filter(({ nodeHints }) => node.name !== "" && nodeHints.includes(node.name));
  if (sameNode.length > 0 && ready.every(({ nodeHints }) => nodeHints.length > 0)) return poolOf(sameNode, ["R-19"]);
  const sameZone = ready.filter(({ zoneHints }) => node.zone !== "" && zoneHints.includes(node.zone));
  if (sameZone.length > 0 && ready.every(({ zoneHints }) => zoneHints.length > 0)) return poolOf(sameZone, ["R-20"]);
  return poolOf(ready);
}

/** Rule R-56: leave out endpoints that a backend can't reach, by the port that most of a pool have and by the host's own addresses. */
export function reachable(
  { cluster, local, hasUsable }: Pools,
  { allAddresses }: Pick<OracleNode, "allAddresses">,
  { endpointPorts, hostEndpoints }: Pick<Capabilities, "endpointPorts" | "hostEndpoints">,
): Pools {
  const reach = (pool: Pool): Pool => {
    const { endpoints, because } = pool;
    const ofPort = endpointPorts === true ? endpoints : ofCommonPort(endpoints);
    const left = hostEndpoints === true ? ofPort : ofPort.filter(({ ip }) => !allAddresses.has(ip));
    return left.length === endpoints.length ? pool : { ...pool, endpoints: left, because: [...because, "R-56"] };
  };
  return { cluster: reach(cluster), local: reach(local), hasUsable };
}

function ofCommonPort(endpoints: readonly OracleEndpoint[]): readonly OracleEndpoint[] {
  const byPort = Map.groupBy(endpoints, ({ text }) => Number(text.slice(text.lastIndexOf(":") + 1)));
  const sorted = [...byPort].toSorted(([a, some], [b, others]) => others.length - some.length || a - b);
  return sorted[0]?.[1] ?? [];
}
