import { parseCIDR } from "@turnout/core";
import type { AllowedAddresses, CIDR, DestinationKind, IPFamily, Protocol } from "@turnout/core";
import { externalTest } from "./addresses-in-use.ts";
import type { ExternalTest } from "./addresses-in-use.ts";
import { poolsOf, reachable } from "./pools.ts";
import type { Pools } from "./pools.ts";
import { readEndpoints } from "./read-endpoints.ts";
import type { OracleEndpoint } from "./read-endpoints.ts";
import { isIn, readNode, readNodeAddresses } from "./read-node.ts";
import type { OracleNode } from "./read-node.ts";
import { ruleAgainst, readServices } from "./read-services.ts";
import type { OracleRow } from "./read-services.ts";
import { remember } from "./remember.ts";
import type { OracleWorld } from "./oracle-world.ts";

/** Who answers for an address and port. */
export interface Owner {
  readonly row: OracleRow;
  readonly kind: DestinationKind;
}

/** Where something is sent to. */
export interface RequestAddress {
  readonly destination: string;
  readonly port: number;
  readonly protocol: Protocol;
}

/** A world as one family sees it. */
export interface Scene {
  readonly node: OracleNode;
  /** Find who answers; undefined when nobody does. */
  ownerOf(target: RequestAddress): Owner | undefined;
  /** Find whose a node port is, on whatever address. */
  nodePortOwner(target: RequestAddress): OracleRow | undefined;
  /** Cluster IPs that some row answers on. */
  readonly clusterIPs: ReadonlySet<string>;
  /** External and load-balancer IPs that some row answers on. */
  readonly externalIPs: ReadonlySet<string>;
  /** The rule that leaves a load-balancer address without rules, if one does. */
  unchangedBy(address: string): string | undefined;
  endpointsOf(row: OracleRow): readonly OracleEndpoint[];
  poolsOf(row: OracleRow): Pools;
  /** Who may use the row's load-balancer IPs (rules ); undefined: everybody. */
  sourcesOf(row: OracleRow): readonly CIDR[] | undefined;
}

/** See a world in one family; what was seen is kept for as long as the world is. */
export const sceneOf: (world: OracleWorld, family: IPFamily) => Scene = remember(see);

function see(world: OracleWorld, family: IPFamily): Scene {
  const { capabilities } = world;
  const isStrict = world.allowedAddresses?.strictSourceRanges === true;
  const node = readNode(world, family);
  const endpointsOf = readEndpoints(world.objects, family, node.name);
  // Rule R-56: what the backend can't do has no row.
  const all = capabilities[family] === true ? readServices(world.objects, family, isStrict) : [];
  const rows = all.filter((row) => capabilities[row.protocol] === true).map((row) => withinAllowed(row, world.allowedAddresses));
  const wanted = new Set(all.flatMap((row) => [...row.externalIPs, ...row.loadBalancerIPs]));
  const isNotAllowed = (ip: string): boolean =>
    wanted.has(ip) && !rows.some((row) => row.externalIPs.includes(ip) || row.loadBalancerIPs.includes(ip));
  const hasUsable = (row: OracleRow): boolean => poolsOf(endpointsOf(row), node).hasUsable;
  const isFree = externalTest(world, family, node);
  const { byAddress, byNodePort } = assignOwners({ rows, hasUsable, isFree, nodeAddresses: readNodeAddresses(world, family) });
  const isLeftOut = ({ row, kind }: Owner): boolean =>
    kind === "loadBalancerIP" && row.sourceRanges !== undefined && capabilities.sourceRanges !== true;
  return {
    node,
    ownerOf(target): Owner | undefined {
      const owner = byAddress.get(targetKey(target));
      if (owner !== undefined && !isLeftOut(owner)) return owner;
      const row = node.nodePortAddresses.has(target.destination) ? byNodePort.get(nodePortKey(target)) : undefined;
      return row === undefined ? undefined : { row, kind: "nodePort" };
    },
    nodePortOwner: (target) => byNodePort.get(nodePortKey(target)),
    clusterIPs: new Set([...byAddress.values()].filter(({ kind }) => kind === "clusterIP").map(({ row }) => row.clusterIP)),
    externalIPs: new Set(
      [...byAddress].filter(([, owner]) => owner.kind !== "clusterIP" && !isLeftOut(owner)).map(([key]) => addressIn(key)),
    ),
    unchangedBy: (address) => ruleAgainst(address, world.objects, family, isStrict) ?? (isNotAllowed(address) ? "R-70" : undefined),
    endpointsOf,
    poolsOf: (row) => reachable(poolsOf(endpointsOf(row), node), node, capabilities),
    sourcesOf: (row) => allowedSources(row, node),
  };
}

/** Rule R-70; a load-balancer IP that is not allowed is not an external IP either. */
function withinAllowed(row: OracleRow, allowed: AllowedAddresses = {}): OracleRow {
  const { externalIPs, loadBalancerIPs } = allowed;
  const isBalanced = (ip: string): boolean => loadBalancerIPs === undefined || isIn(ip, loadBalancerIPs);
  const isExternal = (ip: string): boolean => externalIPs === undefined || isIn(ip, externalIPs);
  return {
    ...row,
    loadBalancerIPs: row.loadBalancerIPs.filter(isBalanced),
    externalIPs: row.externalIPs.filter((ip) => isExternal(ip) && !row.loadBalancerIPs.some((other) => other === ip && !isBalanced(other))),
  };
}

/** What decides who has which address. */
interface Claims {
  readonly rows: readonly OracleRow[];
  readonly hasUsable: (row: OracleRow) => boolean;
  readonly isFree: ExternalTest;
  readonly nodeAddresses: ReadonlySet<string>;
}

/** Who has which address and port. */
interface Owners {
  readonly byAddress: ReadonlyMap<string, Owner>;
  readonly byNodePort: ReadonlyMap<string, OracleRow>;
}

/**
 * Give every address and port to one row: cluster IPs first, then load-balancer IPs, then external IPs, and of one kind to the oldest
 * (rule R-53). External and load-balancer IPs go to the oldest of that one's namespace that has a usable endpoint, if one has. External IPs
 * that the cluster itself uses are nobody's. What is a node's address and a node port is the node port's.
 */
function assignOwners({ rows, hasUsable, isFree, nodeAddresses }: Claims): Owners {
  const byAddress = new Map<string, Owner>();
  const byNodePort = new Map<string, OracleRow>();
  const byAge = rows.toSorted((a, b) => a.createdMs - b.createdMs || (a.key < b.key ? -1 : 1));
  for (const row of byAge) {
    const key = nodePortKey({ port: row.nodePort, protocol: row.protocol });
    if (row.nodePort !== 0 && !byNodePort.has(key)) byNodePort.set(key, row);
  }
  const targetOf = ({ port, protocol }: OracleRow, destination: string): RequestAddress => ({ destination, port, protocol });
  for (const row of byAge) {
    const key = targetKey(targetOf(row, row.clusterIP));
    if (!byAddress.has(key)) byAddress.set(key, { row, kind: "clusterIP" });
  }
  const assign = (kind: DestinationKind, addressesOf: (row: OracleRow) => readonly string[]): void => {
    const wanted = byAge.flatMap((row) => addressesOf(row).map((address) => ({ row, target: targetOf(row, address) })));
    const allowed = wanted.filter(({ row, target }) => {
      const nodePortOwner = nodeAddresses.has(target.destination) ? byNodePort.get(nodePortKey(target)) : undefined;
      return nodePortOwner === undefined || nodePortOwner === row;
    });
    for (const [key, claims] of Map.groupBy(allowed, ({ target }) => targetKey(target))) {
      const oldest = claims[0]?.row;
      if (oldest === undefined || byAddress.has(key)) continue;
      const next = claims.find(({ row }) => row.namespace === oldest.namespace && hasUsable(row));
      byAddress.set(key, { row: next?.row ?? oldest, kind });
    }
  };
  assign("loadBalancerIP", (row) => row.loadBalancerIPs);
  assign("externalIP", (row) => row.externalIPs.filter((address) => isFree(row, address)));
  return { byAddress, byNodePort };
}

/** Rules. */
function allowedSources(row: OracleRow, { primary }: OracleNode): readonly CIDR[] | undefined {
  const { sourceRanges, loadBalancerIPs } = row;
  if (sourceRanges === undefined || primary === undefined || !isIn(primary, sourceRanges)) return sourceRanges;
  const own = loadBalancerIPs.flatMap((ip) => parseCIDR(ip.includes(":") ? `${ip}/128` : `${ip}/32`) ?? []);
  return [...sourceRanges, ...own];
}

function targetKey({ destination, port, protocol }: RequestAddress): string {
  return `${destination} ${port} ${protocol}`;
}

/** The address of a {@link targetKey}. */
function addressIn(key: string): string {
  return key.slice(0, key.indexOf(" "));
}

function nodePortKey({ port, protocol }: Pick<RequestAddress, "port" | "protocol">): string {
  return `${port} ${protocol}`;
}
