import type { PortEndpoints } from "./endpoints.ts";
import type { SliceEndpoint } from "../model/api-objects.ts";
import type { Endpoint, TopologyMode } from "../model/rows.ts";

/** What of a service port and its node decides which endpoints are used. */
export interface PoolQuestion {
  readonly nodeName: string;
  /** "" when the node has no zone label. */
  readonly zone: string;
  /** Traffic of some destination may go anywhere in the cluster. */
  readonly usesCluster: boolean;
  /** Traffic of some destination must stay on the node. */
  readonly usesLocal: boolean;
}

/** The pools, as ascending indexes into the candidates. */
export interface Pools {
  readonly cluster: readonly number[];
  readonly local: readonly number[];
  /** A usable endpoint exists anywhere: an empty pool then means drop, otherwise reject. */
  readonly hasUsableEndpoints: boolean;
  readonly topology: TopologyMode;
}

const NONE: readonly number[] = [];
const COUNTED_MAX = 1_000;
const COUNTED: (readonly number[] | undefined)[] = [];

/**
 * Decide which endpoints this node may use for one service port.
 *
 * Shape: `all` is every endpoint of the port in canonical order; pools keep that order.
 * Edges: empty `all` gives empty pools and `hasUsableEndpoints: false`. Each pool falls back on its own to serving+terminating
 * endpoints when it has no ready one; the cluster pool's fallback ignores topology.
 * @source kube-proxy pkg/proxy/topology.go CategorizeEndpoints; KEP-1669, KEP-2086, KEP-2433; rules
 */
export function poolsFor(all: PortEndpoints, question: PoolQuestion): Pools {
  const ready = indexesWhere(all, ({ ready: isReady }) => isReady);
  const isAllReady = ready.length === all.endpoints.length;
  const servingTerminating = isAllReady ? NONE : indexesWhere(all, (one) => !one.ready && one.serving && one.terminating);
  const topology = question.usesCluster ? topologyMode(all, ready, question) : "";
  return {
    cluster: question.usesCluster ? clusterPool(all, ready, servingTerminating, topology, question) : [],
    local: question.usesLocal ? localPool(all, ready, servingTerminating) : [],
    hasUsableEndpoints: all.hasUsable,
    topology,
  };
}

/**
 * Decide which topology level applies, from the hints of ready endpoints alone.
 *
 * Edges: one ready endpoint without a hint of a level disables that level; node hints that fail fall through to zones.
 * @source kube-proxy pkg/proxy/topology.go topologyModeFromHints; KEP-3015; rules
 */
export function topologyMode(all: PortEndpoints, ready: readonly number[], question: PoolQuestion): TopologyMode {
  if (ready.length === 0) return "";
  const hinted = ready.map((index) => all.entries[index] as SliceEndpoint);
  if (appliesTo(hinted, "nodeHints", question.nodeName)) return "PreferSameNode";
  if (appliesTo(hinted, "zoneHints", question.zone)) return "PreferSameZone";
  return "";
}

function appliesTo(hinted: readonly SliceEndpoint[], level: "nodeHints" | "zoneHints", here: string): boolean {
  if (here === "") return false;
  return hinted.every((entry) => entry[level].length > 0) && hinted.some((entry) => entry[level].includes(here));
}

function clusterPool(
  all: PortEndpoints,
  ready: readonly number[],
  servingTerminating: readonly number[],
  topology: TopologyMode,
  { nodeName, zone }: PoolQuestion,
): readonly number[] {
  if (ready.length === 0) return servingTerminating;
  if (topology === "") return ready;
  const [level, here] = topology === "PreferSameNode" ? (["nodeHints", nodeName] as const) : (["zoneHints", zone] as const);
  return ready.filter((index) => (all.entries[index] as SliceEndpoint)[level].includes(here));
}

function localPool(all: PortEndpoints, ready: readonly number[], servingTerminating: readonly number[]): readonly number[] {
  const isLocal = (index: number): boolean => (all.endpoints[index] as Endpoint).isLocal;
  const readyHere = ready.filter(isLocal);
  return readyHere.length > 0 ? readyHere : servingTerminating.filter(isLocal);
}

function indexesWhere({ endpoints }: PortEndpoints, fits: (endpoint: Endpoint) => boolean): readonly number[] {
  if (endpoints.every(fits)) return allOf(endpoints.length);
  return endpoints.flatMap((endpoint, index) => (fits(endpoint) ? index : []));
}

/** 0 and up, so many: what most pools are, so there is one of each length. */
function allOf(length: number): readonly number[] {
  const known = COUNTED[length];
  if (known !== undefined) return known;
  const made = Array.from({ length }, (_, index) => index);
  if (length < COUNTED_MAX) COUNTED[length] = made;
  return made;
}
