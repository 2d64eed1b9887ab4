import { cidrContains, parseCIDR, parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { errno } from "@turnout/host";
import type { VirtualServerKey, VirtualServerSettings } from "@turnout/host/ipvs/model";

/** Schedulers of Linux 6.1, one module each. @source Linux net/netfilter/ipvs */
export const SCHEDULERS: readonly string[] = ["rr", "wrr", "lc", "wlc", "fo", "ovf", "lblc", "lblcr", "dh", "sh", "mh", "sed", "nq"];

/** A longer one isn't looked at further. @source linux/ip_vs.h IP_VS_SCHEDNAME_MAXLEN */
export const SCHEDULER_NAME_MAX = 15;
/** No connection goes there. Broadcast addresses of the host's own networks are refused as well, which the fake doesn't know. */
const NO_UNICAST: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ["0.0.0.0/32", "224.0.0.0/4", "255.255.255.255/32"],
  IPv6: ["::/128", "ff00::/8", "fe80::/10"],
};

/** What the kernel has against a virtual server's settings; 0: nothing. */
export function settingsFault(
  { family, scheduler, clientPrefixLength }: VirtualServerKey & VirtualServerSettings,
  known: readonly string[],
): number {
  if (!known.includes(scheduler)) return errno("ENOENT");
  return family === "IPv6" && (clientPrefixLength < 1 || clientPrefixLength > 128) ? errno("EINVAL") : 0;
}

/** What the kernel has against a real server's address; 0: nothing. A route isn't needed. */
export function addressFault(family: IPFamily, address: string): number {
  const ip = parseIP(address);
  const isNoUnicast = NO_UNICAST[family].some((text) => {
    const cidr = parseCIDR(text);
    return cidr !== undefined && ip !== undefined && cidrContains(cidr, ip);
  });
  return isNoUnicast ? errno("EINVAL") : 0;
}
