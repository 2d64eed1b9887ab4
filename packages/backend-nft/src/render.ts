import { hostPort, printableName } from "@turnout/core";
import type { Context, Destination, ServicePort } from "@turnout/core";
import { endpointChain, endpointChainName, pickChain, policyFor, sourcesChain, stickyChain, WORDS } from "./chains.ts";
import type { PickTargets } from "./chains.ts";
import { endpointOrder } from "./endpoint-order.ts";
import type { EndpointOrder } from "./endpoint-order.ts";
import { fingerprint } from "./names.ts";
import type { ChainObject, DestinationKind, NftObject, NodePortObject, ServiceObject } from "./objects.ts";
import type { NftFacts, NftOptions } from "./options.ts";

/** nft takes comments of up to 128 bytes; names are ASCII. */
const COMMENT_LENGTH_MAX = 128;
const NO_ENDPOINTS: readonly string[] = [];

/**
 * Say what one row needs in the table.
 *
 * Shape: one element object per destination, the chains its verdict needs (shared between rows of the same shape), its
 * cluster IP, and its local endpoints for hairpin; with affinity, chains of its own.
 */
export function renderRow(row: ServicePort, { node }: Context<NftFacts>, options: Pick<NftOptions, "comments">): readonly NftObject[] {
  const objects = new Map<string, NftObject>();
  const add = (object: NftObject): void => void objects.set(`${object.kind} ${object.key}`, object);
  const orders = new Map<string, { order: EndpointOrder; texts: readonly string[] }>();
  for (const destination of row.destinations) {
    const usage = destination.rules.map(({ to }) => to).join();
    let known = orders.get(usage);
    if (known === undefined) {
      const order = endpointOrder(row, destination);
      orders.set(usage, (known = { order, texts: endpointTexts(row, order.indexes) }));
    }
    for (const object of renderDestination(row, destination, known, node, options.comments ? printableName(row.name) : "")) add(object);
  }
  for (const { ip, isLocal } of row.endpoints) if (isLocal) add({ kind: "hairpin", key: `${ip} . ${ip}`, value: true });
  return [...objects.values()];
}

function renderDestination(
  row: ServicePort,
  destination: Destination,
  { order, texts }: { readonly order: EndpointOrder; readonly texts: readonly string[] },
  node: Context<NftFacts>["node"],
  comment: string,
): readonly NftObject[] {
  const objects: NftObject[] = [];
  const where = destination.kind === "nodePort" ? "nodeport" : "service";
  const isSticky = row.affinitySeconds !== undefined;
  const targets = isSticky ? renderSticky(row, destination, node, objects) : renderPicks(where, row, order, node, objects);
  const { verdict, chain: policy } = policyFor(destination, targets, node);
  if (policy !== undefined) objects.push(policy);
  if (destination.sourceRanges !== undefined) objects.push(sourcesChain(destination.sourceRanges, WORDS[node.family]));
  const protocol = row.name.protocol.toLowerCase();
  const value = { verdict, comment: comment.slice(0, COMMENT_LENGTH_MAX), endpoints: isSticky ? NO_ENDPOINTS : texts };
  const element: ServiceObject | NodePortObject =
    where === "service"
      ? { kind: where, key: `${destination.address} . ${protocol} . ${destination.port}`, value }
      : { kind: where, key: `${protocol} . ${destination.port}`, value };
  objects.push(element);
  if (destination.kind === "clusterIP") objects.push({ kind: "cluster-ips", key: destination.address, value: true });
  return objects;
}

/** Chains are the same for every row with as many endpoints: made once, kept for good (there are few). */
const pickChains = new Map<string, ChainObject>();

function renderPicks(
  where: DestinationKind,
  row: ServicePort,
  { cluster, local }: EndpointOrder,
  { family }: Context<NftFacts>["node"],
  objects: NftObject[],
): PickTargets {
  const pick = (slice: EndpointOrder["cluster"]): string => {
    if (slice.size === 0) return "";
    const memo = `${family} ${where} ${row.name.protocol} ${slice.offset} ${slice.size}`;
    let found = pickChains.get(memo);
    if (found === undefined)
      pickChains.set(memo, (found = pickChain({ where, protocol: row.name.protocol.toLowerCase(), slice }, WORDS[family])));
    objects.push(found);
    return found.key;
  };
  return { cluster: pick(cluster), local: pick(local) };
}

function renderSticky(
  row: ServicePort,
  destination: Destination,
  { family }: Context<NftFacts>["node"],
  objects: NftObject[],
): PickTargets {
  const words = WORDS[family];
  const pool = (name: "cluster" | "local"): string => {
    if (!destination.rules.some(({ to }) => to === name)) return "";
    const endpoints = row[name].map((index) => row.endpoints[index]).filter((endpoint) => endpoint !== undefined);
    const texts = endpoints.map(({ ip, port }) => hostPort(ip, port));
    const chainName = `sticky-${fingerprint(row.key).hex}-${name}`;
    for (const text of texts) {
      objects.push(endpointChain(row.key, row.name.protocol.toLowerCase(), text, text, row.affinitySeconds ?? 0, words));
    }
    const { high, low } = fingerprint(chainName);
    objects.push(stickyChain(chainName, row.key, texts, words));
    objects.push({ kind: "sticky", key: `${high} . ${low}`, value: texts.map((text) => endpointChainName(row.key, text)) });
    return chainName;
  };
  return { cluster: pool("cluster"), local: pool("local") };
}

function endpointTexts(row: ServicePort, indexes: readonly number[]): readonly string[] {
  const texts: string[] = [];
  for (const index of indexes) {
    const endpoint = row.endpoints[index];
    if (endpoint !== undefined) texts.push(`${endpoint.ip} . ${endpoint.port}`);
  }
  return texts.length === 0 ? NO_ENDPOINTS : texts;
}
