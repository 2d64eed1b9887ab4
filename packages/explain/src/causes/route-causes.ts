import type { AskedPacket, Cause } from "@turnout/core";
import { fittingRoutes, refusingRoute, routeText } from "../readings/host-routes.ts";
import type { HostRoute } from "../readings/host-routes.ts";
import { routeCommand } from "../readings/route.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import type { Way } from "../ways/way.ts";

/** Routes are as they should be, and a routing rule keeps the packet from them. Pure. */
export function ruleCause(
  { family }: AskedPacket,
  says: string,
  { text, priority }: { readonly text: string; readonly priority: number },
  to: string,
  show: readonly string[],
  side: "to" | "back",
): Cause {
  const ip = family === "IPv4" ? "ip" : "ip -6";
  return {
    id: side === "to" ? "no_route" : "no_way_back",
    says: `there is no way ${side === "to" ? "" : "back "}to ${to}: ${says} (ip rule: ${text})`,
    show: [`${ip} rule`, ...show],
    fix: "see who set that rule, and what for; if nobody needs it, delete it",
    commands: [`${ip} rule del pref ${priority}`],
  };
}

/** Endpoints that a route to this host itself takes, although they are pods, or on other nodes. Pure. */
export function takenCauses(ways: readonly Way[], hostAddresses: readonly string[]): readonly Cause[] {
  const taken = ways.find(({ there, endpoint: { ip } }) => there.is === "way" && there.isLocal && !hostAddresses.includes(ip));
  if (taken === undefined) return [];
  const { ip } = taken.endpoint;
  const tool = ip.includes(":") ? "ip -6" : "ip";
  return [
    {
      id: "address_taken",
      says: `a local route makes this node itself take packets to ${ip}: they end here, and never reach the endpoint`,
      show: [`${tool} route show table local match ${ip}`],
      fix: "see who set that route; if nobody needs it, delete it",
      commands: [`${tool} route del local ${ip}`],
    },
  ];
}

/**
 * A route that takes an endpoint's packets to a device on whose link nobody has the address: it is narrower than the one that leads to the endpoint's
 * node, or a route of another pod's device. Pure.
 *
 * Edges: a guess, unless the kernel has asked on that link and nobody answered.
 */
export function hiddenCauses({ family }: AskedPacket, { there, endpoint }: Way, facts: WayFacts): readonly Cause[] {
  if (there.is !== "way" || there.isLocal || there.nextHop !== undefined) return [];
  const { ip, isLocal, nodeName } = endpoint;
  const [taken, ...others] = fittingRoutes(facts.routes, ip);
  if (taken === undefined || taken.device !== there.device) return [];
  const isSilent = facts.failedNeighbours.has(`${ip} ${there.device}`);
  // Where clouds have pods' addresses in the network of the uplink, a pod's own route is narrower than that, as it should be.
  const hidden = others.find(
    (other) =>
      other.device !== taken.device && (isLocal ? other.range === taken.range : other.nextHop !== undefined && other.prefixLength > 0),
  );
  const isElsewhere = !isLocal && nodeName !== undefined && hidden !== undefined;
  const neighbour = isLocal && isSilent ? onlyOther(facts.routes, taken) : undefined;
  if (!(isElsewhere || (isLocal && isSilent && hidden !== undefined) || neighbour !== undefined)) return [];
  const tool = family === "IPv4" ? "ip" : "ip -6";
  const why =
    hidden === undefined
      ? `which is the device of another pod (${neighbour?.range.replace(/\/\d+$/, "")}): that route is left over`
      : `and hides the route ${routeText(hidden)}${isElsewhere ? `, by which the pods of ${nodeName} are` : ""}`;
  const isNarrow = taken.prefixLength === (family === "IPv4" ? 32 : 128);
  return [
    {
      id: "route_hidden",
      says: `the route ${routeText(taken)} takes packets to ${ip} to ${taken.device}, ${why}${isSilent ? `; nobody there has ${ip}` : ""}`,
      show: [`${tool} route show match ${ip}`, `${tool} neigh show ${ip}`],
      fix: isNarrow
        ? hidden === undefined
          ? "delete that route, and have the CNI set the pod's own again: delete the pod, so that it is made anew"
          : "delete that route; the other one is taken then"
        : `see who has that network on ${taken.device} (ip addr show ${taken.device}), and give it one that overlaps no pods' range`,
      ...(isNarrow ? { commands: [`${tool} route del ${routeText(taken)}`] } : {}),
      ...(isSilent && hidden !== undefined ? {} : { isSure: false as const }),
    },
  ];
}

/** Where a device leads to one pod alone: the route of that one. */
function onlyOther(routes: readonly HostRoute[], taken: HostRoute): HostRoute | undefined {
  const hosts = routes.filter(({ device, range }) => device === taken.device && !range.startsWith("fe80:"));
  const [other, ...more] = hosts.filter((route) => route !== taken);
  return more.length === 0 && other?.prefixLength === taken.prefixLength && other.nextHop === undefined ? other : undefined;
}

/**
 * A program of this node does not get as far as any rule: the kernel first looks for a route to the address that it was given. Pure.
 *
 * Shape: `devices` are those that are up.
 */
export function unreachableCause({ destination, family }: AskedPacket, routes: readonly HostRoute[], devices: readonly string[]): Cause {
  const ip = family === "IPv4" ? "ip" : "ip -6";
  const refusing = refusingRoute(routes, destination);
  if (refusing !== undefined)
    return {
      id: "no_route",
      says: `the route ${routeText(refusing)} refuses ${destination}, so connect() fails before any rule`,
      show: [`${ip} route show match ${destination}`],
      fix: "see who set that route, and delete it; then the default route is taken, or add one by any device, as rules translate the packet before it leaves",
      commands: [`${ip} route del ${routeText(refusing)}`],
    };
  const [device] = devices;
  return {
    id: "no_route",
    says: `this node has no route to ${destination}, so connect() fails before any rule`,
    show: [routeCommand({ to: destination })],
    fix: "add a default route, or one for the service range; by which device doesn't matter, as rules translate the packet before it leaves. For this address alone",
    ...(device === undefined ? {} : { commands: [`${ip} route add ${destination} dev ${device}`] }),
  };
}
