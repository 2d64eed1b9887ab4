import { hostPort, LOOPBACK_ADDRESS, namesLoopback, nodePortAddresses, objectId, parseCIDR, unusableReason } from "@turnout/core/backend";
import type { Context, Destination, Endpoint, NodeContext, ServicePort } from "@turnout/core/backend";
import { netEntries, portEntry } from "@turnout/host/ipset/text";
import { ruleText, toAddress, toPort } from "@turnout/host/iptables/text";
import { TO_CLUSTER, TO_LOCAL } from "./layout.ts";
import { setName } from "./names.ts";
import type { SetBase } from "./names.ts";
import { serviceKey } from "./objects.ts";
import type { IpvsObject, VirtualAddress } from "./objects.ts";
import type { IpvsFacts, IpvsOptions } from "./options.ts";

type Pool = "cluster" | "local";

/** What becomes of packets to one destination. */
interface Policy {
  /** What pods and the host use, and others if nothing else is said of them; undefined: nothing, IPVS refuses. */
  readonly pool: Pool | undefined;
  /** What becomes of all but pods and the host. */
  readonly others: "same" | "local" | "dropped";
  /** Everybody's new connections are dropped. */
  readonly isDropped: boolean;
  /** Endpoints elsewhere are used in the place of none here, and could not answer a client that is not masqueraded. */
  readonly isFallback?: true;
}

/** What the parts of one row are written with. */
interface RowParts {
  readonly row: ServicePort;
  readonly node: NodeContext;
  readonly host: IpvsFacts;
  readonly options: Pick<IpvsOptions, "scheduler" | "schedulers" | "noLocalEndpoints">;
}

/**
 * Say what one row needs: a virtual server for each of its addresses, its real servers, the address on the dummy device, and the members of the
 * sets that the skeleton's chains look into.
 *
 * Shape: a virtual server has one pool. Under the Local policy of external traffic it is the one of pods and of the host; all others
 * are translated to a second virtual server with the local pool. Where an external or load-balancer IP is the host's own address, node ports of
 * other Services may have virtual servers, so everybody is translated there. Those other virtual servers are at the cluster IP, on ports of their
 * own.
 */
export function renderRow(row: ServicePort, { node, host }: Context<IpvsFacts>, options: RowParts["options"]): readonly IpvsObject[] {
  const parts: RowParts = { row, node, host, options };
  const home = homeOf(parts);
  const objects: IpvsObject[] = [];
  const reached = new Set<Pool>();
  const reach = (pool: Pool | undefined): void => void (pool !== undefined && reached.add(pool));
  for (const destination of row.destinations) {
    const policy = policyOf(destination, parts, home !== undefined);
    const addresses = addressesOf(destination, parts);
    const isTranslated = home !== undefined && isHostsOwn(destination, parts);
    reach(policy.pool);
    objects.push(...memberships(parts, destination, policy));
    if (!isTranslated) for (const address of addresses) objects.push(...virtualServer(parts, address, { ...policy, isInner: false }));
    if (policy.others === "dropped") objects.push(...addresses.map((address) => entry(parts, "TURNOUT-NO-LOCAL", addressAndPort(address))));
    if (home === undefined) continue;
    if (isTranslated) {
      objects.push(...addresses.map((address) => entry(parts, "TURNOUT-OWN", addressAndPort(address))));
      objects.push(...translated(parts, addresses, { chain: TO_CLUSTER, to: innerAddress(home, row, "cluster"), pool: policy.pool }));
    }
    if (policy.others === "local") {
      reach("local");
      objects.push(...translated(parts, addresses, { chain: TO_LOCAL, to: innerAddress(home, row, "local"), pool: "local" }));
    }
  }
  for (const { ip, port } of endpointsOf(row, [...reached]))
    objects.push(entry(parts, "KUBE-LOOP-BACK", `${memberOf(row, ip, port)},${ip}`));
  if (row.healthCheck !== undefined) objects.push(entry(parts, "KUBE-HEALTH-CHECK-NODE-PORT", String(row.healthCheck.port)));
  // An address is wanted by each of its ports.
  return [...new Map(objects.map((object) => [objectId(object), object])).values()];
}

/** The rules that decide among allowed sources; who isn't allowed is kept out by the firewall. */
function policyOf({ rules }: Destination, { row, options }: RowParts, canTranslate: boolean): Policy {
  const last = rules.at(-1)?.to ?? "drop";
  const isClusterReached = rules.some(({ to }) => to === "cluster");
  const same = (pool: Pool | undefined): Policy => ({ pool, others: "same", isDropped: false });
  if (last === "reject") return same(undefined);
  if (last === "cluster") return same("cluster");
  if (last === "local") return isClusterReached && canTranslate ? { pool: "cluster", others: "local", isDropped: false } : same("local");
  if (options.noLocalEndpoints === "cluster" && row.cluster.length > 0) return { ...same("cluster"), isFallback: true };
  return isClusterReached ? { pool: "cluster", others: "dropped", isDropped: false } : { pool: undefined, others: "same", isDropped: true };
}

/** The destination whose address inner virtual servers share: the cluster IP, or what there is where another Service has taken that. */
function homeOf(parts: RowParts): Destination | undefined {
  const served = parts.row.destinations.filter(({ kind }) => kind !== "nodePort");
  return served.find(({ kind }) => kind === "clusterIP") ?? served.find((one) => !isHostsOwn(one, parts)) ?? served[0];
}

/** How far the ports of the inner virtual servers are from the Service's: in other halves and quarters of all ports. */
const PORT_BIT: Readonly<Record<Pool, number>> = { local: 0x8000, cluster: 0x4000 };

/** Where the virtual server with one pool is that packets are translated to. */
function innerAddress({ address, port }: Destination, { name }: ServicePort, pool: Pool): VirtualAddress {
  // The bit twice removed, for the port that would be 0.
  return { protocol: name.protocol, address, port: port ^ PORT_BIT[pool] || PORT_BIT[pool] >> 2 };
}

/** An external or load-balancer IP that the host has itself. */
function isHostsOwn({ kind, address }: Destination, { host, node }: RowParts): boolean {
  return (kind === "externalIP" || kind === "loadBalancerIP") && host.addresses[node.family].includes(address);
}

/** Every address and port that a destination stands for. */
function addressesOf({ kind, address, port }: Destination, { row, node, host }: RowParts): readonly VirtualAddress[] {
  const { protocol } = row.name;
  if (kind !== "nodePort") return [{ protocol, address, port }];
  return nodePortIPs(node, host.addresses[node.family]).map((ip) => ({ protocol, address: ip, port }));
}

/** The host's addresses that answer node ports: never loopback, which IPVS can't serve. */
function nodePortIPs({ family, addresses, settings }: NodeContext, hostAddresses: readonly string[]): readonly string[] {
  const chosen = nodePortAddresses({ wanted: settings.nodePortAddresses ?? [], family, primary: addresses[0], hostAddresses });
  return (chosen === "all" ? hostAddresses : chosen).filter((ip) => unusableReason(ip) !== "loopback");
}

function virtualServer(
  parts: RowParts,
  address: VirtualAddress,
  { pool, isDropped, isInner }: Pick<Policy, "pool" | "isDropped"> & { readonly isInner: boolean },
): readonly IpvsObject[] {
  const { row, host, node, options } = parts;
  const isOnHost = host.addresses[node.family].includes(address.address);
  const bound: readonly IpvsObject[] = isOnHost
    ? []
    : [{ kind: "address", key: address.address, value: true }, entry(parts, "KUBE-IPVS-IPS", address.address)];
  const key = serviceKey(address);
  const scheduler = options.schedulers[`${row.name.namespace}/${row.name.name}`] ?? options.scheduler;
  const serving = new Set(pool === undefined ? [] : row[pool]);
  const servers = row.endpoints.flatMap((endpoint, index): readonly (Endpoint & { readonly weight: number })[] => {
    if (serving.has(index)) return [{ ...endpoint, weight: 1 }];
    return keepsFlows(parts, endpoint, isInner) ? [{ ...endpoint, weight: 0 }] : [];
  });
  return [
    ...bound,
    // Connections that are there go on: the virtual server stays.
    ...(isDropped ? [entry(parts, "TURNOUT-DROP", addressAndPort(address))] : []),
    { kind: "service", key, value: { scheduler, persistentSeconds: row.affinitySeconds ?? 0, isMarked: isInner || isOnHost } },
    ...servers.map(({ ip, port, weight }): IpvsObject => ({ kind: "server", key: `${key} ${hostPort(ip, port)}`, value: weight })),
  ];
}

/**
 * Whether an endpoint that gets no new flows has a real server all the same, as long as it answers: the kernel ends the flows of a real server
 * that goes. TCP's are drained instead.
 */
function keepsFlows({ row }: RowParts, { isLocal, ready, serving }: Endpoint, isInner: boolean): boolean {
  return row.name.protocol !== "TCP" && (ready || serving) && (isLocal || !isInner);
}

/** The members of the sets by which packets are masqueraded and let in. */
function memberships(parts: RowParts, destination: Destination, { pool, others, isFallback }: Policy): readonly IpvsObject[] {
  const members = addressesOf(destination, parts).map(addressAndPort);
  const into = (base: SetBase): readonly IpvsObject[] => members.map((member) => entry(parts, base, member));
  const split = others === "same" ? [] : into("TURNOUT-LOCAL");
  // What is refused anyway is masqueraded or not; it changes in fewer steps when it is as under the Cluster policy.
  const isUnmarked = pool !== undefined && isFallback !== true && destination.rules.at(-1)?.masquerade !== true;
  switch (destination.kind) {
    case "clusterIP":
      return into("KUBE-CLUSTER-IP");
    case "externalIP":
      return [...into(isUnmarked ? "KUBE-EXTERNAL-IP-LOCAL" : "KUBE-EXTERNAL-IP"), ...split];
    case "loadBalancerIP":
      return [
        ...into("KUBE-LOAD-BALANCER"),
        ...(isUnmarked ? into("KUBE-LOAD-BALANCER-LOCAL") : []),
        ...sourceRanges(parts, destination),
        ...split,
      ];
    case "nodePort":
      return [...nodePortMembers(parts, destination.port, isUnmarked), ...split];
  }
}

function nodePortMembers(parts: RowParts, port: number, isUnmarked: boolean): readonly IpvsObject[] {
  const { protocol } = parts.row.name;
  if (protocol !== "SCTP") {
    const bases = [`KUBE-NODE-PORT-${protocol}`, ...(isUnmarked ? [`KUBE-NODE-PORT-LOCAL-${protocol}`] : [])] as readonly SetBase[];
    return bases.map((base) => entry(parts, base, String(port)));
  }
  const bases: readonly SetBase[] = ["KUBE-NODE-PORT-SCTP-HASH", ...(isUnmarked ? (["KUBE-NODE-PORT-LOCAL-SCTP-HASH"] as const) : [])];
  const { family, settings } = parts.node;
  const refused = namesLoopback(settings, family) ? [LOOPBACK_ADDRESS[family]] : [];
  const members = [...nodePortIPs(parts.node, parts.host.addresses[family]), ...refused].map((ip) => memberOf(parts.row, ip, port));
  return bases.flatMap((base) => members.map((member) => entry(parts, base, member)));
}

/** Who may come. */
function sourceRanges(parts: RowParts, { address, port, sourceRanges: ranges }: Destination): readonly IpvsObject[] {
  if (ranges === undefined) return [];
  const member = memberOf(parts.row, address, port);
  return [
    entry(parts, "KUBE-LOAD-BALANCER-FW", member),
    ...ranges
      .flatMap((range) => parseCIDR(range) ?? [])
      .flatMap(netEntries)
      // The host sends from the service address itself.
      .map((net) => entry(parts, net === address ? "KUBE-LOAD-BALANCER-SOURCE-IP" : "KUBE-LOAD-BALANCER-SOURCE-CIDR", `${member},${net}`)),
  ];
}

/** Where packets are translated to, and by which chain. */
interface Translation {
  readonly chain: string;
  readonly to: VirtualAddress;
  readonly pool: Pool | undefined;
}

/** The rules that translate packets to a virtual server of one pool, and that virtual server. */
function translated(parts: RowParts, addresses: readonly VirtualAddress[], { chain, to, pool }: Translation): readonly IpvsObject[] {
  const { family } = parts.node;
  const target = `DNAT --to-destination ${hostPort(to.address, to.port)}`;
  const rules = addresses.map(({ protocol, address, port }): IpvsObject => {
    const word = protocol.toLowerCase();
    const text = ruleText({ destination: toAddress(address, family), protocol: word, matches: [toPort(word, port)], target });
    return { kind: "rule", key: `nat ${chain} ${text}`, value: 1 };
  });
  return [
    ...rules,
    entry(parts, "TURNOUT-INTERNAL", addressAndPort(to)),
    ...virtualServer(parts, to, { pool, isDropped: false, isInner: true }),
  ];
}

function endpointsOf(row: ServicePort, pools: readonly Pool[]): readonly Endpoint[] {
  const indexes = new Set(pools.flatMap((pool) => row[pool]));
  return [...indexes].flatMap((index) => row.endpoints[index] ?? []);
}

function entry({ node }: RowParts, base: SetBase, member: string): IpvsObject {
  return { kind: "entry", key: `${setName(base, node.family)} ${member}`, value: true };
}

function addressAndPort({ protocol, address, port }: VirtualAddress): string {
  return portEntry(address, protocol, port);
}

function memberOf({ name }: ServicePort, ip: string, port: number): string {
  return portEntry(ip, name.protocol, port);
}
