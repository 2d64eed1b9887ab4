import { familyOf, FAMILIES, type IPFamily } from "@turnout/core";
import type { IPSet, PortMapping, Service } from "../gen/kpng/localv1/localv1.ts";

/** An API object, as core's Store takes it in. */
export type RawObject = Readonly<Record<string, unknown>>;

/** Protocols by their numbers on the wire. */
export const PROTOCOLS: Readonly<Record<number, string>> = { 1: "TCP", 2: "UDP", 3: "SCTP" };

/** List the addresses of a set, IPv4 first. */
export function addressesOf(set: IPSet | undefined): readonly string[] {
  return set === undefined ? [] : [...set.V4, ...set.V6];
}

/**
 * Write a Service of kpng's as the API object that it was made of, as far as it says.
 *
 * Edges: nothing is checked here, because the Store does; `refuse` hears of what the object can't say and is therefore left out.
 */
export function rawServiceOf(service: Service, refuse: (what: string) => void): RawObject {
  const { Namespace: namespace, Name: name, Type: type, IPs: ips } = service;
  if (service.MapIP) refuse("it maps whole addresses, of which its ports alone are served");
  const { ranges, open, guarded } = filteredAddresses(service, refuse);
  const clusterIPs = ips?.Headless === true ? ["None"] : addressesOf(ips?.ClusterIPs);
  const affinity = service.SessionAffinity?.value;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace, name },
    spec: {
      type,
      clusterIP: clusterIPs[0] ?? "",
      clusterIPs,
      externalIPs: open,
      ports: service.Ports.map(rawPort),
      internalTrafficPolicy: service.InternalTrafficToLocal ? "Local" : "Cluster",
      externalTrafficPolicy: service.ExternalTrafficToLocal ? "Local" : "Cluster",
      healthCheckNodePort: service.HealthCheckNodePort,
      sessionAffinity: affinity === undefined ? "None" : "ClientIP",
      ...(affinity === undefined || affinity.TimeoutSeconds === 0
        ? {}
        : { sessionAffinityConfig: { clientIP: { timeoutSeconds: affinity.TimeoutSeconds } } }),
      ...(ranges.length === 0 ? {} : { loadBalancerSourceRanges: ranges }),
    },
    status: { loadBalancer: { ingress: guarded.map((ip) => ({ ip })) } },
  };
}

function rawPort({ Name: name, Protocol: protocol, Port: port, NodePort: nodePort }: PortMapping): RawObject {
  return { name, port, protocol: PROTOCOLS[protocol] ?? `protocol ${protocol}`, ...(nodePort === 0 ? {} : { nodePort }) };
}

/**
 * Sort out which addresses may be reached by whom.
 *
 * Shape: a filter without targets is for the load-balancer IPs. A Service of the API has one list of ranges, for those alone, of
 * which each family's are its own; whatever is filtered otherwise is left out, so that nothing is opened.
 */
function filteredAddresses(
  { IPs: ips, IPFilters: filters }: Service,
  refuse: (what: string) => void,
): { readonly ranges: readonly string[]; readonly open: readonly string[]; readonly guarded: readonly string[] } {
  const rangesFor = (ip: string, isBalancer: boolean): string => {
    const fitting = filters.filter(({ TargetIPs: targets }) => {
      const named = addressesOf(targets);
      return named.length === 0 ? isBalancer : named.includes(ip);
    });
    const ranges = fitting.flatMap(({ SourceRanges: texts }) => texts).filter((text) => familyOf(text) === familyOf(ip));
    // Ranges of the other family alone restrict nothing, as in the API.
    return [...new Set(ranges)].sort().join();
  };
  const open = addressesOf(ips?.ExternalIPs).filter((ip) => {
    if (rangesFor(ip, false) === "") return true;
    // It is a load-balancer IP too, and stays as restricted as that.
    if (!addressesOf(ips?.LoadBalancerIPs).includes(ip)) {
      refuse(`the external IP ${ip} is for some sources only, which the API has no words for; it is left out`);
    }
    return false;
  });
  const chosen: Partial<Record<IPFamily, string>> = {};
  const guarded = addressesOf(ips?.LoadBalancerIPs).filter((ip) => {
    const ranges = rangesFor(ip, true);
    const family = familyOf(ip);
    chosen[family] ??= ranges;
    if (chosen[family] === ranges) return true;
    refuse(`the load-balancer IP ${ip} is for other sources than the first, which the API has no words for; it is left out`);
    return false;
  });
  const ranges = FAMILIES.flatMap((family) => (chosen[family] ?? "").split(",").filter((text) => text !== ""));
  return { ranges, open, guarded };
}
