import type { AskedPacket, Cause } from "@turnout/core";
import { routeCommand } from "./route.ts";
import type { Way } from "./way.ts";

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
    mend: "see who set that rule, and what for; if nobody needs it, delete it",
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
      mend: "see who set that route; if nobody needs it, delete it",
      commands: [`${tool} route del local ${ip}`],
    },
  ];
}

/** A program of this node does not get as far as any rule: the kernel first looks for a route to the address that it was given. Pure. */
export function unreachableCause({ destination, family }: AskedPacket): Cause {
  const ip = family === "IPv4" ? "ip" : "ip -6";
  return {
    id: "no_route",
    says: `this node has no route to ${destination}, so connect() fails before any rule`,
    show: [routeCommand({ to: destination })],
    mend: "add a default route, or one for the service range; by which device doesn't matter, as rules translate the packet before it leaves",
    commands: [`${ip} route add default via <gateway>`, `${ip} route add <service range> dev <device>`],
  };
}
