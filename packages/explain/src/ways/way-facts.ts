import type { AskedPacket, IPFamily } from "@turnout/core";
import { readHostRoutes } from "../readings/host-routes.ts";
import type { HostRoute } from "../readings/host-routes.ts";
import { readSenderPort } from "./sender-port.ts";
import { readLinks } from "../readings/links.ts";
import type { Link } from "../readings/links.ts";
import { readLostLinks } from "./lost-links.ts";
import type { LostLink, LostLinkTools } from "./lost-links.ts";
import type { Way, WayTools } from "./way.ts";

/** What of the host decides whether packets get through. */
export interface WayFacts {
  readonly links: ReadonlyMap<string, Link>;
  /** Kernel parameters by path below /proc/sys/net. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Next hops that don't answer, `address device`. */
  readonly failedNeighbours: ReadonlySet<string>;
  /** Of the main table; empty where no way depends on them. */
  readonly routes: readonly HostRoute[];
  /** Ports of bridges that packets take; where there is no way, all. */
  readonly lostLinks: readonly LostLink[];
  /** The port of a bridge behind which the sender is, where it is an endpoint itself; undefined: that does not matter, or can't be told. */
  readonly senderPort?: Link | undefined;
}

/** Read what decides about ways. */
export async function readWayFacts(
  { exec, read, netlink }: WayTools & { readonly netlink: LostLinkTools },
  packet: AskedPacket,
  ways: readonly Way[],
  { ofAllDevices }: { readonly ofAllDevices: boolean },
  signal: AbortSignal,
): Promise<WayFacts> {
  const devices = [...new Set([packet.device, ...ways.flatMap(({ there }) => (there.is === "way" ? [there.device] : []))])].filter(
    (name) => name !== "",
  );
  const links = await readLinks(exec, signal);
  const isLost = ways.some(({ there, back }) => there.is === "none" || back?.is === "none");
  const names = parameterNames(packet.family, isLost || ofAllDevices ? [...links.keys()] : devices);
  const isOnLink = ({ there }: Way): boolean => there.is === "way" && !there.isLocal && there.nextHop === undefined;
  const values = await Promise.all(names.map(async (name) => [name, (await read(`/proc/sys/net/${name}`))?.trim()] as const));
  const parameters = new Map(values.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])));
  const isOff = (link: Link): boolean => packet.family === "IPv6" && isWithoutIPv6(link, parameters);
  const [neighbours, routes, lostLinks, senderPort] = await Promise.all([
    exec.run("ip", ["-j", packet.family === "IPv4" ? "-4" : "-6", "neigh", "show"], { signal }),
    isLost || ways.some(isOnLink) ? readHostRoutes(exec, packet.family, signal) : [],
    readLostLinks(netlink, links, ways, packet.family, isOff),
    readSenderPort(netlink, links, packet, ways),
  ]);
  return { links, parameters, failedNeighbours: failedIn(neighbours.code === 0 ? neighbours.stdout : "[]"), routes, lostLinks, senderPort };
}

/** Tell whether a device has no IPv6: it is switched off, or the MTU is too small. Pure. */
export function isWithoutIPv6({ name, mtu }: Pick<Link, "name" | "mtu">, parameters: WayFacts["parameters"]): boolean {
  return mtu < IPV6_MTU_MIN || parameters.get(`ipv6/conf/${name}/disable_ipv6`) === "1";
}

/** Below it a device has no IPv6. @source RFC 8200, 5 */
export const IPV6_MTU_MIN = 1_280;

/** Name the parameter, below /proc/sys/net, by which what goes from port to port of bridges passes the rules of a family. Pure. */
export function bridgeParameter(family: IPFamily): string {
  return `bridge/bridge-nf-call-${family === "IPv4" ? "iptables" : "ip6tables"}`;
}

function parameterNames(family: IPFamily, devices: readonly string[]): readonly string[] {
  if (family === "IPv6")
    return [
      bridgeParameter(family),
      "ipv6/conf/all/forwarding",
      ...devices.flatMap((device) => [`ipv6/conf/${device}/disable_ipv6`, `ipv6/conf/${device}/forwarding`]),
    ];
  const of = (name: string): readonly string[] => ["all", ...devices].map((device) => `ipv4/conf/${device}/${name}`);
  return [bridgeParameter(family), "ipv4/ip_forward", ...of("forwarding"), ...of("rp_filter"), ...of("route_localnet")];
}

function failedIn(text: string): ReadonlySet<string> {
  const listed = JSON.parse(text === "" ? "[]" : text) as readonly {
    readonly dst?: string;
    readonly dev?: string;
    readonly state?: readonly string[];
  }[];
  return new Set(
    listed.filter(({ state = [] }) => state.includes("FAILED") || state.includes("INCOMPLETE")).map(({ dst, dev }) => `${dst} ${dev}`),
  );
}
