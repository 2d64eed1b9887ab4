import { cidrContains, hostPort, parseCIDR, parseIP } from "@turnout/core/backend";
import type { Context, Destination, Endpoint, IPFamily, ServicePort } from "@turnout/core/backend";
import type { WinkernelFacts } from "./facts.ts";
import { DISTRIBUTION, LB_FLAG, PORT_FLAG } from "./hns/flags.ts";
import { byName, frontendKey, readFrontend } from "./objects.ts";
import type { EndpointObject, LoadBalancerObject, WinkernelObject } from "./objects.ts";
import type { WinkernelOptions } from "./options.ts";

type HostContext = Context<WinkernelFacts>;

/** What exists whatever the Services are: on an overlay the endpoint that has the source address. */
export function renderSkeleton({ host, node }: HostContext, { sourceVip }: WinkernelOptions): readonly WinkernelObject[] {
  const mac = hostMac({ host, node });
  if (host.network !== "overlay" || node.family !== "IPv4" || mac === undefined) return [];
  return [{ kind: "source-vip", key: sourceVip, value: mac }];
}

/** What one row needs: a load balancer for each of its destinations that has endpoints, and the endpoints that they name. */
export function renderRow(row: ServicePort, context: HostContext, options: WinkernelOptions): readonly WinkernelObject[] {
  const preserves = options.preserveDestination.includes(`${row.name.namespace}/${row.name.name}`);
  const balancers = row.destinations.flatMap((destination): readonly Balanced[] => {
    const balanced = balancerFor(row, destination, { context, options, preserves });
    return balanced === undefined ? [] : [balanced, ...healthBalancer(row, destination, options, preserves)];
  });
  const endpoints = new Map<string, EndpointObject>();
  for (const { object, pool } of balancers) {
    for (const endpoint of pool) endpoints.set(endpoint.ip, endpointObject(endpoint, context));
    const own = virtualEndpoint(object, context);
    if (own !== undefined) endpoints.set(own.key, own);
  }
  return [...endpoints.values(), ...balancers.map(({ object }) => object)];
}

/** A load balancer, and the endpoints that it names by their addresses. */
interface Balanced {
  readonly object: LoadBalancerObject;
  readonly pool: readonly Endpoint[];
}

interface BalancerContext {
  readonly context: HostContext;
  readonly options: WinkernelOptions;
  /** The endpoints see the destination as the client wrote it. */
  readonly preserves: boolean;
}

/** Undefined: nobody is there to send to, and HNS refuses a load balancer without endpoints. */
function balancerFor(row: ServicePort, destination: Destination, { context, options, preserves }: BalancerContext): Balanced | undefined {
  const { host } = context;
  const { kind, address: vip, port: external } = destination;
  const rule = destination.rules.at(-1);
  if (rule === undefined || rule.to === "reject" || rule.to === "drop") return undefined;
  const staysHere = preserves && (kind === "nodePort" || kind === "loadBalancerIP");
  const served = poolOf(row, rule.to, [...host.addresses[row.family], ...context.node.addresses]);
  const pool = staysHere ? served.filter(({ isLocal }) => isLocal) : served;
  const [first] = pool;
  if (first === undefined) return undefined;
  const returnsDirectly = kind === "clusterIP" ? options.enableDSR && !rule.masquerade : staysHere || !rule.masquerade;
  const remote = pool.filter(({ isLocal }) => !isLocal);
  return {
    object: {
      kind: "loadbalancer",
      key: frontendKey({ protocol: row.name.protocol, vip, port: external }),
      value: {
        endpoints: [...new Set(pool.map(({ ip }) => ip))].sort(),
        port: first.port,
        flags: (returnsDirectly && host.hasDSR ? LB_FLAG.dsr : 0) | familyFlag(row.family),
        portFlags: portFlags(destination, preserves),
        distribution: row.affinitySeconds === undefined ? DISTRIBUTION.connection : DISTRIBUTION.client,
        sourceVip: sourceVipFor(remote, context, options),
      },
    },
    pool,
  };
}

/** The endpoints of a pool, but for those that have an address of this host: HNS has no endpoint for them (rule R-56). */
function poolOf(row: ServicePort, name: "cluster" | "local", own: readonly string[]): readonly Endpoint[] {
  return row[name].map((index) => row.endpoints[index]).filter((one): one is Endpoint => one !== undefined && !own.includes(one.ip));
}

/** @source kube-proxy pkg/proxy/winkernel/proxier.go syncProxyRules */
function portFlags({ kind }: Destination, preserves: boolean): number {
  const preserving = preserves ? PORT_FLAG.useMux | PORT_FLAG.preserveDip : 0;
  switch (kind) {
    case "clusterIP":
      return 0;
    case "nodePort":
      return PORT_FLAG.localRoutedVip | PORT_FLAG.vipExternalIp;
    case "externalIP":
      return PORT_FLAG.vipExternalIp;
    case "loadBalancerIP":
      return PORT_FLAG.vipExternalIp | preserving;
  }
}

/** Where health checks of a load balancer are answered at its own address: by the host's endpoint. Equal for all ports of a Service. */
function healthBalancer(
  row: ServicePort,
  { kind, address }: Destination,
  options: WinkernelOptions,
  preserves: boolean,
): readonly Balanced[] {
  if (kind !== "loadBalancerIP" || !options.forwardHealthCheckVip) return [];
  const port = row.healthCheck?.port ?? options.healthCheckPort;
  // A port of the Service itself goes before.
  if (row.destinations.some((one) => one.address === address && one.port === port)) return [];
  const object: LoadBalancerObject = {
    kind: "loadbalancer",
    key: frontendKey({ protocol: row.name.protocol, vip: address, port }),
    value: {
      endpoints: [byName(options.rootHnsEndpointName)],
      port,
      flags: familyFlag(row.family),
      portFlags: preserves ? PORT_FLAG.useMux | PORT_FLAG.preserveDip : 0,
      distribution: DISTRIBUTION.connection,
      sourceVip: "",
    },
  };
  return [{ object, pool: [] }];
}

function familyFlag(family: IPFamily): number {
  return family === "IPv6" ? LB_FLAG.ipv6 : 0;
}

/**
 * The address that an overlay's load balancer takes as source: this host's own where an endpoint is a host, or is on none of the remote subnets.
 * @source kube-proxy pkg/proxy/winkernel/proxier.go containsPublicIP, containsNodeIP
 */
function sourceVipFor(remote: readonly Endpoint[], { host, node }: HostContext, { sourceVip }: WinkernelOptions): string {
  if (host.network !== "overlay") return "";
  const isOfHosts = ({ ip }: Endpoint): boolean =>
    host.remoteSubnets.some(({ provider }) => provider === ip) || providerOf(ip, host) === undefined;
  return remote.some(isOfHosts) ? (node.addresses[0] ?? sourceVip) : sourceVip;
}

function providerOf(address: string, { remoteSubnets }: Pick<WinkernelFacts, "remoteSubnets">): string | undefined {
  const ip = parseIP(address);
  return remoteSubnets.find(({ prefix }) => {
    const cidr = parseCIDR(prefix);
    return ip !== undefined && cidr !== undefined && cidrContains(cidr, ip);
  })?.provider;
}

function endpointObject({ ip, isLocal }: Endpoint, { host, node }: HostContext): EndpointObject {
  return { kind: "endpoint", key: ip, isLocal, value: elsewhere(ip, host, node.addresses[0] ?? "") };
}

/** What an endpoint has where it is on another host; `own`: the address of this one. */
export function elsewhere(
  ip: string,
  host: Pick<WinkernelFacts, "network" | "remoteSubnets">,
  own: string,
): { readonly mac: string; readonly provider: string } {
  return { mac: macOf(ip), provider: host.network === "overlay" ? (providerOf(ip, host) ?? own) : "" };
}

/** On an overlay a cluster IP has an endpoint, too, so that this host answers for it. */
function virtualEndpoint({ key, value }: LoadBalancerObject, context: HostContext): EndpointObject | undefined {
  const { host, node } = context;
  const mac = hostMac(context);
  const isClusterIP = value.portFlags === 0 && value.endpoints[0]?.startsWith("@") !== true;
  if (host.network !== "overlay" || mac === undefined || !isClusterIP) return undefined;
  return { kind: "endpoint", key: readFrontend(key).vip, value: { mac, provider: node.addresses[0] ?? "" } };
}

function hostMac({ host, node }: HostContext): string | undefined {
  return host.macs[node.addresses[0] ?? ""];
}

/**
 * Make up a MAC address: `02-11-` and the four bytes of an IPv4 address, or the last four of an IPv6 address, reversed.
 * @source kube-proxy pkg/proxy/winkernel/proxier.go conjureMac
 */
export function macOf(address: string): string {
  const ip = parseIP(address);
  if (ip === undefined) throw new Error(`${hostPort(address, 0)} is no address`);
  const last = Number(ip.value & 0xffff_ffffn);
  const bytes = [24, 16, 8, 0].map((shift) => ((last >>> shift) & 0xff).toString(16).padStart(2, "0"));
  return ["02", "11", ...(ip.family === "IPv6" ? bytes.reverse() : bytes)].join("-");
}
