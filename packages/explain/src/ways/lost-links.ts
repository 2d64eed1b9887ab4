import { listedNames } from "@turnout/core";
import type { AskedPacket, Cause, IPFamily } from "@turnout/core";
import type { Netlink } from "@turnout/host";
import type { Link } from "../readings/links.ts";
import type { Way } from "./way.ts";

/** A device by which nothing of a family goes: it is down, without carrier, or without IPv6. */
export interface LostLink {
  readonly link: Link;
  /** Its own addresses of either family, each with the length of its network's prefix. */
  readonly addresses: readonly string[];
  /** The addresses of the pod behind it, of a bridge of those behind its ports, of one family; undefined: the kernel doesn't tell, or there is none. */
  readonly behind: readonly string[] | undefined;
}

/** What lost devices are looked up with. */
export type LostLinkTools = Pick<Netlink, "addresses" | "addressesIn">;

/** More than this are not looked behind. */
const LINKS_MAX = 64;

/**
 * Find devices by which nothing goes: the ports of bridges that packets take, and where there is no way all of them, with those that `isOff` says have no
 * IPv6.
 * @throws {ProxyError} what netlink fails with.
 */
export async function readLostLinks(
  netlink: LostLinkTools,
  links: ReadonlyMap<string, Link>,
  ways: readonly Way[],
  family: IPFamily,
  isOff: (link: Link) => boolean,
): Promise<readonly LostLink[]> {
  const routes = ways.flatMap(({ there, back }) => [there, ...(back === undefined ? [] : [back])]);
  const isNowhere = routes.some(({ is }) => is === "none");
  const taken = new Set(routes.flatMap((route) => (route.is === "way" ? route.device : [])));
  const lost = [...links.values()].filter((link) => {
    const { name, master = "" } = link;
    return name !== "lo" && (isNowhere || taken.has(master)) && (isLost(link) || (isNowhere && isOff(link)));
  });
  if (lost.length === 0) return [];
  const own = [...(await netlink.addresses("IPv4")), ...(await netlink.addresses("IPv6"))].filter(({ ip }) => !isOfLink(ip));
  return await Promise.all(
    lost.slice(0, LINKS_MAX).map(async (link) => ({
      link,
      addresses: own.flatMap((address) => (address.link === link.name ? `${address.ip}/${address.prefixLength}` : [])),
      behind: await addressesBehind(netlink, [link, ...[...links.values()].filter(({ master }) => master === link.name)], family),
    })),
  );
}

/** List the addresses of pods behind devices; undefined: none of them has one behind it that the kernel tells of. */
export async function addressesBehind(
  netlink: Pick<LostLinkTools, "addressesIn">,
  devices: readonly Link[],
  family: IPFamily,
): Promise<readonly string[] | undefined> {
  const found = await Promise.all(
    devices.flatMap(({ namespace }) => (namespace === undefined ? [] : [netlink.addressesIn(namespace, family)])),
  );
  const reported = found.filter((addresses) => addresses !== undefined);
  if (reported.length === 0) return undefined;
  return reported.flat().filter((address) => !address.startsWith("127.") && address !== "::1" && !isOfLink(address));
}

function isLost({ isUp, hasCarrier, isBlocked }: Link): boolean {
  return !isUp || !hasCarrier || isBlocked === true;
}

/** IPv6 gives one to each device. */
function isOfLink(address: string): boolean {
  return address.startsWith("fe80:");
}

/**
 * Name the port of a bridge by which nothing gets to an endpoint, or back to the client. Pure.
 *
 * Edges: a guess where the pod behind a port has no address of this family: IPv6 takes them off a device that is down.
 */
export function portCauses({ family, source }: AskedPacket, { endpoint, there, back }: Way, lost: readonly LostLink[]): readonly Cause[] {
  const neighbours = [
    ...(there.is === "way" && !there.isLocal ? [{ bridge: there.device, address: there.nextHop ?? endpoint.ip }] : []),
    ...(back?.is === "way" && !back.isLocal ? [{ bridge: back.device, address: back.nextHop ?? source }] : []),
  ];
  return neighbours.flatMap(({ bridge, address }) => {
    const ports = lost.filter(({ link }) => link.master === bridge && isLost(link));
    const own = ports.find(({ behind }) => behind?.includes(address));
    if (own !== undefined) return [portCause(own, `the port of ${bridge} that leads to ${address}`)];
    const bare = family === "IPv6" ? ports.find(({ behind }) => behind?.length === 0) : undefined;
    if (bare === undefined) return [];
    return [{ ...portCause(bare, `a port of ${bridge}, perhaps the one that leads to ${address}`), isSure: false as const }];
  });
}

function portCause({ link: { name, isUp, hasCarrier } }: LostLink, is: string): Cause {
  if (isUp && hasCarrier)
    return {
      id: "device_down",
      says: `${name} is blocked by its bridge, and is ${is}`,
      show: [`bridge -d link show dev ${name}`],
      fix: "see why (spanning tree, or somebody set it so), and let it forward",
      commands: [`bridge link set dev ${name} state forwarding`],
    };
  return {
    id: "device_down",
    says: isUp ? `${name} has no carrier (the other end is down or gone), and is ${is}` : `${name} is down, and is ${is}`,
    show: [`ip link show ${name}`],
    ...(isUp
      ? { fix: "bring the other end up; that of a pod: delete the pod, its network namespace is broken" }
      : { fix: "set it up", commands: [`ip link set ${name} up`] }),
  };
}

const NAMED_MAX = 3;

/** Name ports of bridges by which nothing goes, where nobody can tell what is behind them. Pure. */
export function portNotes(lost: readonly LostLink[]): readonly string[] {
  const unknown = lost.filter(({ link, behind }) => link.master !== undefined && behind === undefined);
  return [...Map.groupBy(unknown, ({ link }) => link.master)].map(
    ([bridge, of]) => `nothing goes by ${namesOf(of)}, of ${bridge} (down, without carrier or blocked): what is behind can't be told`,
  );
}

/** Devices that are down, by their names. Pure. */
export function namesOf(lost: readonly LostLink[]): string {
  return listedNames(
    lost.map(({ link }) => link.name),
    NAMED_MAX,
  );
}
