import { cidrContains, parseIP } from "../model/addresses.ts";
import type { CIDR } from "../model/addresses.ts";

/**
 * Which addresses Services may have besides their cluster IPs.
 *
 * Shape: CIDRs of both families. Undefined: any address may be had; a list without a CIDR of a family allows none of that family.
 * @source rules
 */
export interface AllowedAddresses {
  /** For `spec.externalIPs`. */
  readonly externalIPs?: readonly CIDR[] | undefined;
  /** For `status.loadBalancer.ingress`. */
  readonly loadBalancerIPs?: readonly CIDR[] | undefined;
  /** Load-balancer IPs of a family without a source range are not allowed where the Service has ranges of the other one. */
  readonly strictSourceRanges?: boolean | undefined;
  /** External IPs that something else in the cluster uses are left out, and not only reported. */
  readonly strictExternalIPs?: boolean | undefined;
}

/** Tell whether a list allows an address. Edges: undefined allows any; what is no address is not allowed. */
export function isAllowed(address: string, list: readonly CIDR[] | undefined): boolean {
  if (list === undefined) return true;
  const ip = parseIP(address);
  return ip !== undefined && list.some((cidr) => cidrContains(cidr, ip));
}
