import { hostPort } from "@turnout/core/backend";
import type { Counts, Destination, Endpoint, IPFamily, ServicePort } from "@turnout/core";
import type { FamilyView } from "./proxy-view.ts";
import type { RowCounts } from "./service-counts.ts";
import { bounded, type Bounded } from "./status.ts";

/** Rows of one answer. */
const ROWS_MAX = 50;
/** Of a search that much is read. */
const SEARCH_LENGTH_MAX = 200;

/** What to list. */
export interface ListQuestion {
  /** Words that a row's name, its addresses or its endpoints must have, with spaces between. */
  readonly search: string;
  /** {@link RowList.next} of an earlier answer; "" is from the beginning. */
  readonly after: string;
}

/** An address that a row answers on, for people. */
export interface ListedDestination {
  readonly kind: Destination["kind"];
  /** `10.96.0.10:80`, `node port 30080`. */
  readonly text: string;
  /** In order; the first that fits decides. */
  readonly rules: readonly string[];
}

/** A row, for people. */
export interface ListedRow {
  readonly key: string;
  readonly family: IPFamily;
  readonly destinations: Bounded<ListedDestination>;
  /** `serving`: how many of them are used here. */
  readonly endpoints: Bounded<string> & { readonly serving: number };
  readonly policies: readonly string[];
  readonly isRefused: boolean;
  readonly isWaiting: boolean;
  readonly counts?: Counts;
}

/** Some of the rows that were asked for. */
export interface RowList {
  /** How many there are. */
  readonly count: number;
  readonly rows: readonly ListedRow[];
  /** Where the next rows begin; absent: there are none. */
  readonly next?: string;
}

interface Found {
  readonly place: string;
  readonly row: ServicePort;
  readonly view: FamilyView;
}

/** List rows of all families by name, a page at a time. Pure; costs what there are rows. `counted` is what was counted, by family. */
export function listRows(
  families: readonly FamilyView[],
  { search, after }: ListQuestion,
  counted: ReadonlyMap<IPFamily, readonly RowCounts[]>,
): RowList {
  const words = search
    .slice(0, SEARCH_LENGTH_MAX)
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const found: Found[] = [];
  for (const view of families) {
    for (const row of view.rows.values()) {
      if (words.every((word) => hasWord(row, word))) found.push({ place: `${row.key} ${view.family}`, row, view });
    }
  }
  found.sort((a, b) => (a.place < b.place ? -1 : 1));
  const begin = after === "" ? 0 : found.findIndex(({ place }) => place > after);
  const page = begin < 0 ? [] : found.slice(begin, begin + ROWS_MAX);
  const last = page.at(-1)?.place;
  const hasMore = begin >= 0 && begin + ROWS_MAX < found.length;
  const states = new Map(families.map((view) => [view.family, stateOf(view, counted.get(view.family) ?? [])]));
  const rows = page.map(({ row, view }) => listed(row, view.family, states.get(view.family)));
  return { count: found.length, rows, ...(hasMore && last !== undefined ? { next: last } : {}) };
}

function hasWord(row: ServicePort, word: string): boolean {
  if (row.key.toLowerCase().includes(word) || row.family.toLowerCase() === word) return true;
  if (row.destinations.some((destination) => destinationText(destination).includes(word))) return true;
  return /^[\d.:a-f[\]]+$/.test(word) && row.endpoints.some(({ ip, port }) => hostPort(ip, port).includes(word));
}

interface RowStates {
  readonly refused: ReadonlySet<string>;
  readonly waiting: ReadonlySet<string>;
  readonly counts: ReadonlyMap<string, Counts>;
}

function stateOf({ refusals, pendingSinceMs, waitingRows }: FamilyView, counted: readonly RowCounts[]): RowStates {
  return {
    refused: new Set(refusals.flatMap(({ rows }) => rows)),
    waiting: new Set(pendingSinceMs === undefined ? [] : waitingRows),
    counts: new Map(counted.map(({ row, counts }) => [row, counts])),
  };
}

function listed(row: ServicePort, family: IPFamily, states: RowStates | undefined): ListedRow {
  const counts = states?.counts.get(row.key);
  const used = new Set([...row.cluster, ...row.local]);
  const destinations = row.destinations.map((destination): ListedDestination => ({
    kind: destination.kind,
    text: destinationText(destination),
    rules: destination.rules.map(({ from, to, masquerade }) => `${from} → ${to}${masquerade ? " (masquerade)" : ""}`),
  }));
  return {
    key: row.key,
    family,
    destinations: bounded(destinations),
    endpoints: { ...bounded(row.endpoints.map((endpoint, index) => endpointText(endpoint, used.has(index)))), serving: used.size },
    policies: policiesOf(row),
    isRefused: states?.refused.has(row.key) === true,
    isWaiting: states?.waiting.has(row.key) === true,
    ...(counts === undefined ? {} : { counts }),
  };
}

function destinationText({ address, port }: Destination): string {
  return address === "" ? `node port ${port}` : hostPort(address, port);
}

function endpointText({ ip, port, nodeName, isLocal, ready, serving, terminating }: Endpoint, isUsed: boolean): string {
  const where = isLocal ? " on this node" : nodeName === undefined ? "" : ` on ${nodeName}`;
  const condition = ready ? "ready" : terminating ? (serving ? "terminating, still serving" : "terminating") : "not ready";
  return `${hostPort(ip, port)}${where}: ${condition}${isUsed ? "" : ", not used from here"}`;
}

function policiesOf(row: ServicePort): readonly string[] {
  const { internalLocal, externalLocal, affinitySeconds, topology, healthCheck, destinations } = row;
  const ranges = destinations.flatMap(({ sourceRanges = [] }) => sourceRanges);
  return [
    ...(internalLocal ? ["internalTrafficPolicy: Local"] : []),
    ...(externalLocal ? ["externalTrafficPolicy: Local"] : []),
    ...(affinitySeconds === undefined ? [] : [`sessionAffinity: ClientIP, ${affinitySeconds} s`]),
    ...(topology === "" ? [] : [`topology: ${topology} narrows the endpoints`]),
    ...(ranges.length === 0 ? [] : [`loadBalancerSourceRanges: ${[...new Set(ranges)].slice(0, 20).join(", ")}`]),
    ...(healthCheck === undefined ? [] : [`healthCheckNodePort: ${healthCheck.port}, ${healthCheck.readyLocal} ready endpoints here`]),
  ];
}
