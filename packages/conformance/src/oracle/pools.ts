import type { OracleEndpoint } from "./read-endpoints.ts";
import type { OracleNode } from "./read-node.ts";

/** The endpoints of a row that may serve, with the rules that chose them. */
export interface Pools {
  /** For whoever may be sent anywhere; empty only when no endpoint is usable at all (rule R-21). */
  readonly cluster: Pool;
  /** For whoever must stay on this node. */
  readonly local: Pool;
}

/** One pool. */
export interface Pool {
  readonly endpoints: readonly OracleEndpoint[];
  readonly because: readonly string[];
}

/** Decide which endpoints of a row may serve (rules ). */
export function poolsOf(endpoints: readonly OracleEndpoint[], node: OracleNode): Pools {
  const onNode = (endpoint: OracleEndpoint): boolean => node.name !== "" && endpoint.nodeName === node.name;
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  const draining = endpoints.filter(isDraining);
  const localReady = ready.filter(onNode);
  return {
    cluster: ready.length > 0 ? near(ready, node) : { endpoints: draining, because: draining.length > 0 ? ["R-17", "R-18"] : [] },
    local: localReady.length > 0 ? { endpoints: localReady, because: [] } : fallBack(draining.filter(onNode)),
  };
}

/** Whether an endpoint serves, wherever and under whatever policy. */
export function isServing(endpoint: OracleEndpoint): boolean {
  return endpoint.ready || isDraining(endpoint);
}

function isDraining({ ready, serving, terminating }: OracleEndpoint): boolean {
  return !ready && serving && terminating;
}

function fallBack(draining: readonly OracleEndpoint[]): Pool {
  return { endpoints: draining, because: draining.length > 0 ? ["R-18", "R-17"] : [] };
}

/** Rules. */
function near(ready: readonly OracleEndpoint[], node: OracleNode): Pool {
  const sameNode = ready.filter(({ nodeHints }) => node.name !== "" && nodeHints.includes(node.name));
  if (sameNode.length > 0 && ready.every(({ nodeHints }) => nodeHints.length > 0)) return { endpoints: sameNode, because: ["R-19"] };
  const sameZone = ready.filter(({ zoneHints }) => node.zone !== "" && zoneHints.includes(node.zone));
  if (sameZone.length > 0 && ready.every(({ zoneHints }) => zoneHints.length > 0)) return { endpoints: sameZone, because: ["R-20"] };
  return { endpoints: ready, because: [] };
}
