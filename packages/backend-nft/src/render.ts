import { cidrContains, parseCIDR, parseIP, printableName } from "@turnout/core";
import { LOOPBACK_ADDRESS, namesLoopback } from "@turnout/core/backend";
import type { Context, Destination, ServicePort } from "@turnout/core/backend";
import { affinityChain, atPlaces, endpointChain, numbered, pickChain, policyFor, slotsFor, sourcesChain, wordsOf } from "./chains.ts";
import type { AffineRow, PickTargets, Words } from "./chains.ts";
import { clientsMap, LOOPBACK_CHAIN, servingMap } from "./names.ts";
import { endpointLocation, largePoolKey, largePoolMap, POOLS, SMALL_POOL_MAX } from "./objects.ts";
import type { ChainObject, DestinationKind, NftObject, PoolName } from "./objects.ts";
import type { NftFacts, NftOptions } from "./options.ts";

/** nft takes comments of up to 128 bytes; names are ASCII. */
const COMMENT_LENGTH_MAX = 128;
const NO_ENDPOINTS: readonly string[] = [];

/**
 * Say what one row needs in the table.
 *
 * Shape: one element object per destination, the chains its verdict needs (shared between rows of the same shape), its
 * cluster IP, and for hairpin its local endpoints, those of which no node is known, and those that may come back by this node; with affinity, chains and maps of its own.
 */
export function renderRow(
  row: ServicePort,
  { node }: Context<NftFacts>,
  options: Pick<NftOptions, "comments" | "counters">,
): readonly NftObject[] {
  const objects = new Map<string, NftObject>();
  const add = (object: NftObject): void => void objects.set(`${object.kind} ${object.key}`, object);
  const pools: Pools = { cluster: endpointTexts(row, row.cluster), local: endpointTexts(row, row.local) };
  const comment = options.comments ? printableName(row.name).slice(0, COMMENT_LENGTH_MAX) : "";
  const words = wordsOf(node.family, options.counters);
  for (const destination of row.destinations) {
    for (const object of renderDestination(row, destination, pools, { node, words, comment })) add(object);
  }
  const reaches = reachesItself(row, node);
  for (const { ip, nodeName, isLocal } of row.endpoints)
    if (isLocal || nodeName === undefined || reaches(ip)) add({ kind: "hairpin", key: `${ip} . ${ip}`, value: true });
  return [...objects.values()];
}

/**
 * Tell which endpoints elsewhere may be sent back to themselves with their own source address: pods that ask this node for a Service whose
 * external policy is Local, where all pods of the cluster are short-circuited. All others ask their own node, or are masqueraded anyway.
 */
function reachesItself({ destinations }: ServicePort, { detector }: Context<NftFacts>["node"]): (ip: string) => boolean {
  const isShortCircuited = destinations.some(({ rules }) => rules.some(({ from, to }) => from === "localPod" && to === "cluster"));
  if (!isShortCircuited || detector?.by !== "cidr") return () => false;
  const ranges = detector.cidrs.map((text) => parseCIDR(text)).filter((range) => range !== undefined);
  return (text) => {
    const ip = parseIP(text);
    return ip !== undefined && ranges.some((range) => cidrContains(range, ip));
  };
}

/** The endpoints of a row's pools as nft writes them; every destination that uses a pool holds the same list. */
type Pools = Readonly<Record<PoolName, readonly string[]>>;

function renderDestination(
  row: ServicePort,
  destination: Destination,
  pools: Pools,
  { node, words, comment }: { readonly node: Context<NftFacts>["node"]; readonly words: Words; readonly comment: string },
): readonly NftObject[] {
  const objects: NftObject[] = [];
  const where = destination.kind === "nodePort" ? "nodeport" : "service";
  const hasAffinity = row.affinitySeconds !== undefined;
  const usedPool = (name: PoolName): readonly string[] => (destination.rules.some(({ to }) => to === name) ? pools[name] : NO_ENDPOINTS);
  const used: Pools = hasAffinity
    ? { cluster: NO_ENDPOINTS, local: NO_ENDPOINTS }
    : { cluster: usedPool("cluster"), local: usedPool("local") };
  const protocol = row.name.protocol.toLowerCase();
  const key = where === "service" ? `${destination.address} . ${protocol} . ${destination.port}` : `${protocol} . ${destination.port}`;
  const targets = hasAffinity
    ? renderAffinity(row, destination, words, objects)
    : renderPicks({ where, key, protocol, used }, words, objects);
  const { verdict, chain: policy } = policyFor(destination, targets, node, words);
  if (policy !== undefined) objects.push(policy);
  if (destination.sourceRanges !== undefined) objects.push(sourcesChain(destination.sourceRanges, words));
  objects.push({ kind: where, key, value: { verdict, comment, cluster: ifSmall(used.cluster), local: ifSmall(used.local) } });
  if (destination.kind === "nodePort" && protocol !== "tcp" && namesLoopback(node.settings, node.family)) {
    const onLoopback = `${LOOPBACK_ADDRESS[node.family]} . ${key}`;
    objects.push({
      kind: "service",
      key: onLoopback,
      value: { verdict: `goto ${LOOPBACK_CHAIN}`, comment, cluster: NO_ENDPOINTS, local: NO_ENDPOINTS },
    });
  }
  if (destination.kind === "clusterIP") objects.push({ kind: "cluster-ips", key: destination.address, value: true });
  return objects;
}

/** Chains are the same for every row of a protocol: made once, kept for good (there are few). */
const pickChains = new Map<string, ChainObject>();

/** The places of a pool that lies with all others of its protocol; large ones are objects of their own. */
function ifSmall(pool: readonly string[]): readonly string[] {
  return pool.length > SMALL_POOL_MAX ? NO_ENDPOINTS : atPlaces(pool);
}

/** A destination as {@link renderPicks} needs it. */
interface Picked {
  readonly where: DestinationKind;
  readonly key: string;
  readonly protocol: string;
  readonly used: Pools;
}

function renderPicks({ where, key, protocol, used }: Picked, words: Words, objects: NftObject[]): PickTargets {
  const pick = ({ name: pool, from }: (typeof POOLS)[number]): string => {
    const endpoints = used[pool];
    if (endpoints.length === 0) return "";
    const place = endpointLocation(where, key, from);
    const isLarge = endpoints.length > SMALL_POOL_MAX;
    const map = isLarge ? largePoolMap(where, key) : place.map;
    if (isLarge) {
      objects.push({ kind: "map", key: map, value: true }, { kind: "large-pool", key: largePoolKey({ ...place, map }), value: endpoints });
    }
    const slots = isLarge ? slotsFor(endpoints.length) : undefined;
    const memo = `${words.ip} ${map} ${pool} ${slots ?? ""} ${words.isCounting}`;
    let found = pickChains.get(memo);
    if (found === undefined) pickChains.set(memo, (found = pickChain({ where, protocol, pool, slots, map }, words)));
    objects.push(found);
    return found.key;
  };
  const [cluster = "", local = ""] = POOLS.map(pick);
  return { cluster, local };
}

function renderAffinity(row: ServicePort, destination: Destination, words: Words, objects: NftObject[]): PickTargets {
  const of: AffineRow = { key: row.key, protocol: row.name.protocol.toLowerCase(), seconds: row.affinitySeconds ?? 0 };
  const all = numbered(row.endpoints);
  const pool = (name: PoolName): string => {
    if (!destination.rules.some(({ to }) => to === name)) return "";
    const endpoints = row[name].flatMap((index) => all[index] ?? []);
    const chains = endpoints.map((endpoint) => endpointChain(of, endpoint, words));
    const chainName = `${clientsMap(row.key)}-${name}`;
    const serving = servingMap(chainName);
    objects.push({ kind: "map", key: clientsMap(row.key), value: true }, { kind: "map", key: serving, value: true }, ...chains);
    objects.push(affinityChain(chainName, of, endpoints.length, words));
    objects.push({ kind: "affinity-endpoints", key: serving, value: chains.map(({ key }) => key) });
    for (const [index, { id }] of endpoints.entries())
      objects.push({ kind: "affinity-serving", key: `${serving} ${id}`, value: chains[index]?.key ?? "" });
    return chainName;
  };
  return { cluster: pool("cluster"), local: pool("local") };
}

function endpointTexts(row: ServicePort, indexes: readonly number[]): readonly string[] {
  const texts: string[] = [];
  // Joined: a template would keep its parts and nodes that link them, 100 bytes for each of a hundred thousand endpoints.
  for (const index of indexes) {
    const endpoint = row.endpoints[index];
    if (endpoint !== undefined) texts.push([endpoint.ip, endpoint.port].join(" . "));
  }
  return texts.length === 0 ? NO_ENDPOINTS : texts;
}
