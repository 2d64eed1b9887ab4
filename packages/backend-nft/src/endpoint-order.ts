import type { Destination, ServicePort } from "@turnout/core";

/** Where a pool lies in a destination's list: `size` endpoints from index `offset`. */
export interface Slice {
  readonly offset: number;
  readonly size: number;
}

/** A destination's endpoints in one list in which every pool it uses is one run. */
export interface EndpointOrder {
  /** Indexes into the row's endpoints. */
  readonly indexes: readonly number[];
  readonly cluster: Slice;
  readonly local: Slice;
}

const EMPTY: Slice = { offset: 0, size: 0 };

/**
 * Order the endpoints a destination needs: those only the local pool has, then those of both, then the rest of the
 * cluster pool, so that one list with offsets serves both pools.
 */
export function endpointOrder(row: ServicePort, destination: Destination): EndpointOrder {
  const usesCluster = destination.rules.some(({ to }) => to === "cluster");
  const usesLocal = destination.rules.some(({ to }) => to === "local");
  if (!usesLocal)
    return { indexes: usesCluster ? row.cluster : [], cluster: { offset: 0, size: usesCluster ? row.cluster.length : 0 }, local: EMPTY };
  if (!usesCluster) return { indexes: row.local, cluster: EMPTY, local: { offset: 0, size: row.local.length } };
  const inCluster = new Set(row.cluster);
  const inLocal = new Set(row.local);
  const localOnly = row.local.filter((index) => !inCluster.has(index));
  const both = row.local.filter((index) => inCluster.has(index));
  const clusterOnly = row.cluster.filter((index) => !inLocal.has(index));
  return {
    indexes: [...localOnly, ...both, ...clusterOnly],
    cluster: { offset: localOnly.length, size: row.cluster.length },
    local: { offset: 0, size: row.local.length },
  };
}
