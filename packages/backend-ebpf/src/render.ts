import { hostPort, LOOPBACK_ADDRESS, namesLoopback } from "@turnout/core/backend";
import type { Context, Destination, NodeContext, Origin, ServicePort } from "@turnout/core/backend";
import { encodeEndpoint, UNSPECIFIED } from "./bytes/layout.ts";
import { listId, loopbackId, NO_LIST, rangesId, rowId, tenantId } from "./names.ts";
import type { Choice, ListObject, MapObject, RangesObject, ServiceObject } from "./objects.ts";
import { affinitySets } from "./options.ts";
import type { EbpfFacts, EbpfOptions } from "./options.ts";
import { isInside, podRangesOf, sortCIDRs } from "./bytes/ranges.ts";

/** Whom a choice is for. */
type Asker = "pod" | "host" | "outside";

/** The origins that each asker has, but for `outsideSourceRanges`, which comes first (R-39) and is not the choices' matter. */
const ORIGINS: Readonly<Record<Asker, ReadonlySet<Origin>>> = {
  pod: new Set<Origin>(["localPod", "anyone"]),
  host: new Set<Origin>(["thisHost", "offCluster", "anyone"]),
  outside: new Set<Origin>(["offCluster", "anyone"]),
};

type PoolName = "cluster" | "local";

/**
 * Say what one row needs: an element for each destination, the lists and source ranges that these name, and counters. Pure.
 * @source rules
 */
export function renderRow(row: ServicePort, { node }: Context<EbpfFacts>, options: EbpfOptions): readonly MapObject[] {
  const id = rowId(row.key, row.family);
  const { namespace, name } = row.name;
  const isOptedOut = options.hostSocketsOnly || [`${namespace}/${name}`, `${namespace}/*`].some((one) => options.optOutServices.has(one));
  const lists = new Map<PoolName, ListObject>();
  const listOf = (pool: PoolName): ListObject => {
    let list = lists.get(pool);
    if (list === undefined) lists.set(pool, (list = renderList(row, pool)));
    return list;
  };
  const services = row.destinations.map((destination): ServiceObject => {
    const choose = (asker: Asker): Choice => choiceFor(asker, destination, listOf);
    const allowed = allowedSources(destination);
    return {
      kind: "service",
      key: destinationKey(row, destination),
      value: {
        row: id,
        tenant: tenantId(namespace),
        ranges: allowed === undefined ? NO_LIST : rangesId(allowed),
        affinitySeconds: row.affinitySeconds ?? 0,
        affinitySets: row.affinitySeconds === undefined ? 0 : affinitySets(options.sizes),
        podsPass: isOptedOut || (allowed !== undefined && !isPodInside(allowed, node)),
        hostPass: allowed !== undefined && !isHostInside(allowed, node),
        isClusterIP: destination.kind === "clusterIP",
        pod: choose("pod"),
        host: choose("host"),
        outside: choose("outside"),
      },
    };
  });
  if (services.length === 0) return [];
  const distinct = new Map([...lists.values()].map((list) => [list.key, list]));
  const counters: readonly MapObject[] = options.counters ? [{ kind: "counter", key: id, value: true }] : [];
  return [...counters, ...distinct.values(), ...renderRanges(row), ...services, ...refusedOnLoopback(row, node)];
}

/** A node port of UDP where loopback is named: the host's own sockets are refused, and those of pods ask their own loopback. */
function refusedOnLoopback(row: ServicePort, { settings }: NodeContext): readonly ServiceObject[] {
  const { name, family, destinations } = row;
  if (name.protocol !== "UDP" || !namesLoopback(settings, family)) return [];
  const reject: Choice = { verdict: "reject", list: NO_LIST, count: 0, masquerade: false };
  const value = {
    row: loopbackId(family),
    tenant: NO_LIST,
    ranges: NO_LIST,
    affinitySeconds: 0,
    affinitySets: 0,
    podsPass: true,
    hostPass: false,
    isClusterIP: false,
    pod: reject,
    host: reject,
    outside: reject,
  };
  return destinations
    .filter(({ kind }) => kind === "nodePort")
    .map(({ port }) => ({ kind: "service", key: `${hostPort(LOOPBACK_ADDRESS[family], port)}/UDP`, value }));
}

/** The key of a destination's element; a node port's has the unspecified address of the family. */
function destinationKey({ family, name }: ServicePort, { kind, address, port }: Destination): string {
  const at = kind === "nodePort" ? UNSPECIFIED[family] : address;
  return `${hostPort(at, port)}/${name.protocol}`;
}

/** The first rule that fits the asker decides; the source ranges let it in. */
function choiceFor(asker: Asker, { rules }: Destination, listOf: (pool: PoolName) => ListObject): Choice {
  const rule = rules.find(({ from }) => ORIGINS[asker].has(from));
  const to = rule?.to ?? "drop";
  if (to === "reject" || to === "drop") return { verdict: to, list: NO_LIST, count: 0, masquerade: false };
  const list = listOf(to);
  return { verdict: "serve", list: list.key, count: list.value.length, masquerade: rule?.masquerade === true };
}

/** The sources that a destination is for; undefined: all. */
function allowedSources({ rules, sourceRanges = [] }: Destination): readonly string[] | undefined {
  return rules.some(({ from }) => from === "outsideSourceRanges") ? sortCIDRs(sourceRanges) : undefined;
}

/** The source ranges that a row's destinations name, each once; those that let nobody in are nowhere. */
function renderRanges(row: ServicePort): readonly RangesObject[] {
  const all = row.destinations.flatMap((destination): readonly RangesObject[] => {
    const value = allowedSources(destination);
    return value === undefined || value.length === 0 ? [] : [{ kind: "ranges", key: rangesId(value), value }];
  });
  return [...new Map(all.map((ranges) => [ranges.key, ranges])).values()];
}

/** Tell whether the host's sockets may be served: they have no source address yet when they ask, so its primary one counts. */
function isHostInside(allowed: readonly string[], { addresses: [primary] }: NodeContext): boolean {
  return primary !== undefined && allowed.some((range) => isInside(primary, range));
}

/**
 * Tell whether any source address that a pod of this node may have is let in. To say no is safe: packets are then decided on by the address that they
 * have. So it is no where detect-local doesn't tell pods by addresses: what the node was given is not what every CNI uses.
 */
function isPodInside(allowed: readonly string[], node: NodeContext): boolean {
  const isReported = node.detector?.by === "cidr" && node.detector.cidrs.length > 0;
  return isReported && podRangesOf(node).every((one) => allowed.some((range) => isInside(one, range)));
}

/** Programs look for an endpoint by halving, so a list is in the order of its bytes. */
function renderList(row: ServicePort, pool: PoolName): ListObject {
  const endpoints = row[pool].flatMap((index) => row.endpoints[index] ?? []).map(({ ip, port }) => hostPort(ip, port));
  const sorted = endpoints
    .map((text) => ({ text, bytes: encodeEndpoint(text) }))
    .toSorted((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ text }) => text);
  return { kind: "list", key: listId(sorted), value: sorted };
}
