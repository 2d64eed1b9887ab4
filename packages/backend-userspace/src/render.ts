import type { ListenerObject, ListenerRule, ListenerValue, Transport } from "@turnout/client/sockets";
import { printableName } from "@turnout/core";
import { hostPort, LOOPBACK_ADDRESS, namesLoopback, nodePortAddresses, unusableReason } from "@turnout/core/backend";
import type { Context, Destination, IPFamily, LocalDetector, NodeContext, Rule, ServicePort } from "@turnout/core/backend";
import { OWN_DEVICE } from "./objects.ts";
import type { HostObject, UserspaceObject } from "./objects.ts";
import type { MapEntry, UserspaceOptions } from "./options.ts";

/** What rendering knows of the host. */
export interface UserspaceFacts {
  /** Addresses per family, canonical, without ours and without link-local ones. */
  readonly addresses: Readonly<Record<IPFamily, readonly string[]>>;
  /** This process may give the host addresses. */
  readonly canOwnAddresses: boolean;
}

const REFUSE: Rule = { from: "anyone", to: "reject", masquerade: false };

type Where = Context<UserspaceFacts>;

/** What exists whatever the services are: how to tell this host and its pods. Pure. */
export function renderSkeleton({ node, host }: Where): readonly HostObject[] {
  return [{ kind: "host", key: "self", value: { addresses: host.addresses[node.family], pods: podRanges(node) } }];
}

/**
 * The ranges by which a pod is told from others.
 *
 * Edges: a socket doesn't say by which interface a client came, so where interfaces should tell pods, the range of this node's pods does;
 * while that isn't known nobody is a pod.
 */
export function podRanges({
  detector,
  podCIDRs,
}: {
  readonly detector: LocalDetector | undefined;
  readonly podCIDRs: readonly string[];
}): readonly string[] {
  if (detector === undefined) return [];
  return detector.by === "cidr" ? detector.cidrs : podCIDRs.slice(0, 1);
}

/** What one row needs: listeners, the addresses they sit on, and a word on what can't be answered. Pure. */
export function renderRow(row: ServicePort, context: Where, options: UserspaceOptions): readonly UserspaceObject[] {
  const { protocol } = row.name;
  if (protocol === "SCTP") return [];
  const own = context.host.addresses[row.family];
  const isOwning = ownsAddresses(options, context.host);
  const objects: UserspaceObject[] = [];
  const leftOut: string[] = [];
  const listen = (kind: ListenerObject["kind"], destination: Destination, ip: string, port: number): void => {
    objects.push({
      kind,
      key: `${protocol} ${hostPort(ip, port)}`,
      value: listenerValue(row, protocol, destination, { ip, port }, options),
    });
  };
  const mapped = mapsOf(row, options.map);
  for (const { destination, local } of mapped) listen("listener", destination, local.ip, local.port);
  for (const destination of row.destinations) {
    const { kind, address, port } = destination;
    if (kind === "nodePort") {
      for (const ip of nodePortIps(context)) listen("node-port", destination, ip, port);
      // The process answers TCP there, whatever the backend.
      if (protocol === "UDP" && namesLoopback(context.node.settings, row.family))
        listen("node-port", { ...destination, rules: [REFUSE] }, LOOPBACK_ADDRESS[row.family], port);
    } else if (own.includes(address)) listen("listener", destination, address, port);
    else if (isOwning) {
      objects.push({ kind: "address", key: address, value: { device: OWN_DEVICE } });
      listen("listener", destination, address, port);
    } else if (!mapped.some((one) => one.destination === destination)) leftOut.push(hostPort(address, port));
  }
  if (leftOut.length > 0)
    objects.push({ kind: "left-out", key: row.key, value: { addresses: leftOut, why: whyLeftOut(options, context.host) } });
  return objects;
}

/** Tell whether services' addresses are taken on a device of ours. Pure. */
export function ownsAddresses(
  { ownAddresses, map }: Pick<UserspaceOptions, "ownAddresses" | "map">,
  { canOwnAddresses }: UserspaceFacts,
): boolean {
  return ownAddresses === "auto" ? canOwnAddresses && map.length === 0 : ownAddresses;
}

function whyLeftOut({ map }: UserspaceOptions, { canOwnAddresses }: UserspaceFacts): string {
  if (!canOwnAddresses) return "this process may not give the host addresses: map them with --map, or run it with CAP_NET_ADMIN";
  return map.length > 0 ? "not mapped: name it in --map too, or pass own-addresses=true" : "own-addresses is false: map them with --map";
}

/** As kube-proxy's nftables mode has it: the fewest. */
export const NODE_PORT_ADDRESSES: readonly string[] = ["primary"];

/** Addresses that answer node ports: never loopback, as R-37 has it. */
function nodePortIps({
  node: { family, addresses, settings },
  host,
}: {
  readonly node: NodeContext;
  readonly host: UserspaceFacts;
}): readonly string[] {
  const hostAddresses = host.addresses[family];
  const chosen = nodePortAddresses({
    wanted: settings.nodePortAddresses ?? NODE_PORT_ADDRESSES,
    family,
    primary: addresses[0],
    hostAddresses,
  });
  return (chosen === "all" ? hostAddresses : chosen).filter((ip) => unusableReason(ip) !== "loopback");
}

interface Mapped {
  readonly destination: Destination;
  readonly local: MapEntry["local"];
}

/** Destinations of a row that are mapped; one named by its service port stands for its first address. */
function mapsOf(row: ServicePort, map: readonly MapEntry[]): readonly Mapped[] {
  return map.flatMap(({ target, protocol, local }): readonly Mapped[] => {
    if (local.family !== row.family || (protocol !== undefined && protocol !== row.name.protocol)) return [];
    const byAddress = row.destinations.find(({ address, port }) => address !== "" && hostPort(address, port) === target);
    const destination = byAddress ?? (printableName(row.name) === target ? row.destinations[0] : undefined);
    return destination === undefined ? [] : [{ destination, local }];
  });
}

function listenerValue(
  row: ServicePort,
  transport: Transport,
  { address, port, rules, sourceRanges }: Destination,
  at: { readonly ip: string; readonly port: number },
  { proxyProtocol, proxyProtocolFor }: UserspaceOptions,
): ListenerValue {
  const endpoints = (pool: "cluster" | "local"): readonly string[] =>
    rules.some(({ to }) => to === pool) ? row[pool].flatMap((index) => endpointText(row, index)) : [];
  const reports = transport === "TCP" && (proxyProtocolFor.includes(printableName(row.name)) || proxyProtocolFor.includes("*"));
  return {
    row: row.key,
    transport,
    ...at,
    asked: { address, port },
    rules: rules.map(({ from, to }): ListenerRule => ({ from, to })),
    cluster: endpoints("cluster"),
    local: endpoints("local"),
    ...(sourceRanges === undefined ? {} : { sourceRanges }),
    ...(row.affinitySeconds === undefined ? {} : { affinitySeconds: row.affinitySeconds }),
    ...(reports && proxyProtocol !== undefined ? { proxyProtocol } : {}),
  };
}

function endpointText({ endpoints }: ServicePort, index: number): readonly string[] {
  const endpoint = endpoints[index];
  return endpoint === undefined ? [] : [hostPort(endpoint.ip, endpoint.port)];
}
