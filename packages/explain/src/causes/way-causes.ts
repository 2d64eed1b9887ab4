import { cidrContains, hostPort, parseCIDR, parseIP, UNKNOWN_DEVICE } from "@turnout/core";
import type { AskedPacket, Cause, Fate, FateEndpoint, Step } from "@turnout/core";
import { routeCommand } from "../readings/route.ts";
import type { Link } from "../readings/links.ts";
import { namesOf, portCauses } from "../ways/lost-links.ts";
import type { LostLink } from "../ways/lost-links.ts";
import { refusingRoute, routeText } from "../readings/host-routes.ts";
import type { HostRoute } from "../readings/host-routes.ts";
import { hiddenCauses, ruleCause } from "./route-causes.ts";
import type { Route, RouteQuestion } from "../readings/route.ts";
import { IPV6_MTU_MIN, isWithoutIPv6 } from "../ways/way-facts.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import type { Way } from "../ways/way.ts";

/** Say where a packet goes to endpoints, those together that it goes to alike, and where answers go. Pure. */
export function waySteps(packet: AskedPacket, ways: readonly Way[]): readonly Step[] {
  const alike = Map.groupBy(ways, ({ there, isListenedTo }) => {
    if (there.is === "none")
      return there.why === "rp_filter" ? "the kernel drops it where it comes in (rp_filter)" : `the kernel finds no way (${there.says})`;
    if (there.isLocal) return hereText(isListenedTo);
    return `it leaves by ${leaveText(there)}`;
  });
  const there = [...alike].map(([way, of]) => ({
    says: `to ${of.map(({ endpoint }) => hostPort(endpoint.ip, endpoint.port)).join(", ")}: ${way}`,
  }));
  return [...there, ...new Set(ways.flatMap((way) => answerText(packet, way) ?? []))].map((step) =>
    typeof step === "string" ? { says: step } : step,
  );
}

function hereText(isListenedTo: boolean | undefined): string {
  if (isListenedTo === undefined) return "this host itself takes it";
  return isListenedTo ? "a program of this host takes it" : "this host itself takes it, and nothing listens there";
}

/** By which device, to which next hop, and whether no route but the default one fits. */
function leaveText({ device, nextHop, isDefault }: Extract<Route, { is: "way" }>): string {
  return `${device}${nextHop === undefined ? "" : ` via ${nextHop}`}${isDefault === true ? " (default route)" : ""}`;
}

/** Where answers leave this host; undefined: they end here, or nobody can tell. */
function answerText({ source, device, isDeviceAssumed }: AskedPacket, { there, back, askedBack }: Way): string | undefined {
  if (there.is === "none" && there.elsewhere !== undefined && there.elsewhere !== device)
    return `answers to ${source} leave by ${there.elsewhere}, not by ${device} where it came in`;
  if (back === undefined || there.is !== "way") return undefined;
  if (back.is === "none") {
    const why = back.why === "rp_filter" ? `rp_filter drops them at ${askedBack.by ?? "their device"}` : back.says;
    return `answers to ${source} don't leave this node (${why})`;
  }
  if (back.isLocal || device === "" || device === UNKNOWN_DEVICE) return undefined;
  const leave = `answers to ${source} leave by ${leaveText(back)}`;
  if (back.device !== device) return `${leave}, not by ${device} where it came in`;
  return isDeviceAssumed === true ? `${leave}; so it is taken to come in there, too` : `${leave}, where it came in`;
}

/** Say what keeps packets from going this way. Pure. */
export function wayCauses(packet: AskedPacket, way: Way, facts: WayFacts): readonly Cause[] {
  const { there, back, asked, askedBack, endpoint } = way;
  const device = there.is === "way" ? there.device : "";
  const forwarding = forwardingCauses(packet, way, facts);
  const ports = portCauses(packet, way, facts.lostLinks);
  // Of a bridge whose port is named it need not be said that it has no carrier.
  const isNamed = ports.some(({ isSure }) => isSure !== false);
  const linksOf = (name: string, nextHop: string): readonly Cause[] =>
    linkCauses(packet, facts, name, nextHop).filter(
      ({ id }) => !(isNamed && id === "device_down" && facts.links.get(name)?.bridge !== undefined),
    );
  // Where the kernel does not forward, it finds no way for what comes in, whatever routes there are.
  const isLost = (route: Route | undefined): route is Extract<Route, { is: "none" }> =>
    route?.is === "none" && (forwarding.length === 0 || route.why !== "no_route");
  return [
    ...forwarding,
    ...defaultCauses(way),
    ...hiddenCauses(packet, way, facts),
    ...(isLost(there) ? [lostCause(packet, there, asked, endpoint, facts, "to")] : []),
    ...(isLost(back) ? [lostCause(packet, back, askedBack, endpoint, facts, "back")] : []),
    ...ports,
    ...(there.is === "way" && !there.isLocal ? linksOf(device, there.nextHop ?? endpoint.ip) : []),
    ...(back?.is === "way" && !back.isLocal && packet.device !== "" ? linksOf(back.device, back.nextHop ?? packet.source) : []),
  ];
}

/** A pod of this node that only the default route leads to. A guess: its network may be behind the default route after all. */
function defaultCauses({ endpoint, there, asked }: Way): readonly Cause[] {
  if (there.is !== "way" || there.isDefault !== true || !endpoint.isLocal) return [];
  return [
    {
      id: "no_route",
      isSure: false,
      says: `${endpoint.ip} is on this node, but the default route takes it to ${there.device}: its own route is missing`,
      show: [routeCommand(asked), "ip route"],
      fix: routeFix(endpoint),
    },
  ];
}

/** A pod of this node that only the default route leads back to. A guess, as for an endpoint. */
export function senderCauses({ source, device }: AskedPacket, fate: Fate, ways: readonly Way[]): readonly Cause[] {
  const back = ways.find((way) => way.back?.is === "way" && way.back.isDefault === true);
  if (fate.is !== "forward" || fate.isSenderHere !== true || device === "" || back?.back?.is !== "way") return [];
  return [
    {
      id: "no_way_back",
      isSure: false,
      says: `${source} is on this node, but the default route takes answers to it to ${back.back.device}: its own route is missing`,
      show: [routeCommand(back.askedBack), "ip route"],
      fix: "the CNI sets this route when it makes the pod: delete the pod, so that it is made again",
    },
  ];
}

/** Name pods that only the default route leads to: those of other nodes, and addresses of this node's range that are not known to be pods. Pure. */
export function defaultNotes(packet: AskedPacket, ways: readonly Way[], podCIDRs: readonly string[]): readonly string[] {
  const away = ways.find(
    ({ there, endpoint }) => there.is === "way" && there.isDefault === true && !endpoint.isLocal && endpoint.nodeName !== undefined,
  );
  const routes = ways.flatMap(({ there, back, endpoint }) => [
    ...(endpoint.isLocal ? [] : [{ route: there, to: endpoint.ip, what: "it" }]),
    ...(packet.device === "" || back === undefined ? [] : [{ route: back, to: packet.source, what: "answers to it" }]),
  ]);
  const notes = routes.flatMap(({ route, to, what }) => {
    const range = podCIDRs.find((cidr) => contains(cidr, to));
    if (route.is !== "way" || route.isDefault !== true || range === undefined) return [];
    return [
      `${to} is in the range of this node's pods (${range}), but the default route takes ${what} to ${route.device}: if it is a pod here, its own route is missing`,
    ];
  });
  return [...new Set([...(away === undefined ? [] : [awayNote(away)]), ...notes])];
}

function awayNote({ endpoint: { ip, nodeName = "" } }: Way): string {
  return `only the default route leads to ${ip}, which is on ${nodeName}: that is right where the network itself knows the way to pods (as in many clouds); where a CNI sets a route for each node, the route to ${nodeName} is missing`;
}

function contains(range: string, address: string): boolean {
  const [cidr, ip] = [parseCIDR(range), parseIP(address)];
  return cidr !== undefined && ip !== undefined && cidrContains(cidr, ip);
}

/** A packet that the kernel sends nowhere. */
function lostCause(
  packet: AskedPacket,
  route: Extract<Route, { is: "none" }>,
  asked: RouteQuestion,
  endpoint: FateEndpoint,
  facts: WayFacts,
  side: "to" | "back",
): Cause {
  const to = side === "to" ? endpoint.ip : packet.source;
  const show = [routeCommand(asked)];
  if (route.why === "rp_filter") return reversePathCause(asked, route.elsewhere);
  if (route.why === "refused")
    return {
      id: "martian",
      says: `the kernel takes a packet from ${asked.from} to ${to}${asked.by === undefined ? "" : ` by ${asked.by}`} for one that can't be (martian)`,
      show,
      fix: `see who has these addresses (ip addr); is ${asked.from} an address of this host too?`,
    };
  if (route.why === "other")
    return {
      id: side === "to" ? "no_route" : "no_way_back",
      isSure: false,
      says: `which way packets to ${to} go can't be told (${route.says})`,
      show,
      fix: "see what ip says, and whether the question fits this host",
    };
  if (route.rule !== undefined) return ruleCause(packet, route.says, route.rule, to, show, side);
  const refusing = refusingRoute(facts.routes, to);
  // A wider one takes what a device that is down, or without IPv6, has taken its routes along for.
  const isOwn = refusing?.prefixLength === (packet.family === "IPv4" ? 32 : 128);
  const lost = isOwn ? undefined : deviceCause(packet, route.says, to, facts, side);
  if (lost !== undefined) return lost;
  if (refusing !== undefined) return refusedCause(packet, refusing, to, endpoint, { isOwn, side, facts });
  if (side === "back")
    return {
      id: "no_way_back",
      says: `there is no route back to ${to}: answers can't be sent (${route.says})`,
      show,
      fix: `${lostText(packet, facts)}add a route to the client's network by the way it came: ip route add ${to} …`,
    };
  return {
    id: "no_route",
    says: `there is no route to ${to} (${route.says})`,
    show,
    fix: `${lostText(packet, facts)}${routeFix(endpoint)}`,
  };
}

/** What to do about a route of a pod that is missing. Pure. */
function routeFix({ isLocal, nodeName }: FateEndpoint): string {
  const agent = "the CNI's agent (its pod in kube-system, and its log)";
  if (isLocal) return "the CNI sets this route when it makes the pod: delete the pod, so that it is made again";
  if (nodeName === undefined) return `see whether ${agent} runs on this node and has set its routes: ip route`;
  return `this node has no route to the pods of ${nodeName}: see whether ${agent} runs here and on ${nodeName}, and what it says of ${nodeName}`;
}

/** A route that refuses: it is in the way if it is for this address alone; else a narrower one may be missing, which the CNI sets. */
function refusedCause(
  packet: AskedPacket,
  route: HostRoute,
  to: string,
  endpoint: FateEndpoint,
  { isOwn, side, facts }: { readonly isOwn: boolean; readonly side: "to" | "back"; readonly facts: WayFacts },
): Cause {
  const ip = packet.family === "IPv4" ? "ip" : "ip -6";
  const missing = side === "to" ? routeFix(endpoint) : `add a route to the client's network by the way it came: ${ip} route add ${to} …`;
  return {
    id: side === "to" ? "no_route" : "no_way_back",
    says: `there is no route ${side === "to" ? "" : "back "}to ${to}: the route ${routeText(route)} refuses it${isOwn ? "" : ", and no narrower one leads there"}`,
    show: [`${ip} route show match ${to}`],
    fix: isOwn
      ? "see who set that route; if nobody needs it, delete it"
      : `${lostText(packet, facts)}${missing}; or delete that route, if nobody needs it`,
    ...(isOwn ? { commands: [`${ip} route del ${routeText(route)}`] } : {}),
  };
}

/** The check is right where the route is wrong, so the route comes first. */
function reversePathCause({ from, by }: RouteQuestion, elsewhere: string | undefined): Cause {
  return {
    id: "rp_filter",
    says: `a packet from ${from} that comes in by ${by} is dropped: the way to ${from} is ${elsewhere === undefined ? "another" : `by ${elsewhere}`}, and rp_filter is strict`,
    show: [`ip route get ${from}`, `sysctl net.ipv4.conf.all.rp_filter net.ipv4.conf.${by}.rp_filter`],
    fix: `have the route to ${from} lead by ${by}. Only where packets are meant to come and go by different devices, loosen the check on ${by} instead (rp_filter=2)`,
  };
}

/** Routes that are gone because a device is down, or has no IPv6: one that leads to the pod, or whose own network has the address. */
function deviceCause({ family }: AskedPacket, says: string, to: string, facts: WayFacts, side: "to" | "back"): Cause | undefined {
  const { lostLinks, parameters } = facts;
  const blamed = (fits: (link: Link) => boolean): readonly LostLink[] =>
    lostLinks.filter(
      ({ link, behind, addresses }) => fits(link) && (behind?.includes(to) === true || addresses.some((network) => contains(network, to))),
    );
  const [narrow] = family === "IPv6" ? blamed(({ isUp, mtu }) => isUp && mtu < IPV6_MTU_MIN) : [];
  if (narrow !== undefined) {
    const { name, mtu } = narrow.link;
    return {
      id: "mtu",
      says: `there is no IPv6 way to ${to}: the MTU of ${name} is ${mtu}, and IPv6 is off on devices below ${IPV6_MTU_MIN}`,
      show: [`ip link show ${name}`],
      fix: `set the MTU to whatever the network carries (at least ${IPV6_MTU_MIN}), then the device's addresses and routes again`,
      commands: [`ip link set ${name} mtu 1500`],
    };
  }
  const [off] = family === "IPv6" ? blamed(({ name }) => parameters.get(`ipv6/conf/${name}/disable_ipv6`) === "1") : [];
  if (off !== undefined) {
    const { name } = off.link;
    return {
      id: "ipv6_off",
      says: `there is no IPv6 way to ${to}: IPv6 is off on ${name}`,
      show: [`sysctl net.ipv6.conf.${name}.disable_ipv6`],
      fix: "switch it on, then set the device's addresses and routes again",
      commands: [`sysctl -w net.ipv6.conf.${name}.disable_ipv6=0`],
    };
  }
  const down = blamed(({ isUp }) => !isUp);
  const [first] = down;
  if (first === undefined) return undefined;
  const { name } = first.link;
  return {
    id: "device_down",
    says: `there is no way ${side === "to" ? `to ${to}` : `back to ${to}`} (${says}), and ${namesOf(down)} is down, which took its routes along`,
    show: [`ip link show ${name}`],
    fix: "set the device up, then set the routes again (the CNI's, for a pod: delete the pod)",
    commands: [`ip link set ${name} up`],
  };
}

/** Devices that may have taken the route along, though nothing shows that they led there: to be looked at first. */
function lostText({ family }: AskedPacket, { lostLinks, parameters }: WayFacts): string {
  const isOff = (link: Link): boolean => family === "IPv6" && isWithoutIPv6(link, parameters);
  const other = lostLinks.find(
    ({ link, addresses }) =>
      addresses.length > 0 &&
      (!link.isUp || isOff(link)) &&
      link.bridge === undefined &&
      link.namespace === undefined &&
      link.master === undefined,
  );
  if (other === undefined) return "";
  const { name, isUp } = other.link;
  const [is, fix] = isUp
    ? [`has no IPv6 (switched off, or an MTU below ${IPV6_MTU_MIN})`, "give it IPv6"]
    : ["is down", `set it up (ip link set ${name} up)`];
  return `${name} ${is}: if the route was by it, ${fix}, and its routes again. Else `;
}

function forwardingCauses(packet: AskedPacket, way: Way, { parameters }: WayFacts): readonly Cause[] {
  const { there, endpoint, asked, isForwardedBack } = way;
  const isForwarded = isForwardedBack ?? (packet.device !== "" && !(there.is === "way" && there.isLocal));
  if (asked.from?.startsWith("127.") === true && !endpoint.ip.startsWith("127.") && !(there.is === "way" && there.isLocal)) {
    const isOn = ["all", there.is === "way" ? there.device : ""].some(
      (device) => parameters.get(`ipv4/conf/${device}/route_localnet`) === "1",
    );
    if (!isOn)
      return [
        {
          id: "localnet_off",
          says: "the packet comes from 127.0.0.1, and route_localnet is off",
          show: ["sysctl net.ipv4.conf.all.route_localnet"],
          fix: "ask an address of the node instead of 127.0.0.1",
        },
      ];
  }
  if (!isForwarded) return [];
  const devices = [...(isForwardedBack === undefined ? [packet.device] : []), ...(there.is === "way" ? [there.device] : [])];
  const name = packet.family === "IPv4" ? "ipv4" : "ipv6";
  const off =
    packet.family === "IPv6"
      ? parameters.get("ipv6/conf/all/forwarding") === "0"
        ? "net.ipv6.conf.all.forwarding"
        : undefined
      : parameters.get("ipv4/ip_forward") === "0" && devices.some((device) => parameters.get(`ipv4/conf/${device}/forwarding`) !== "1")
        ? "net.ipv4.ip_forward"
        : devices
            .map((device) => `${name}/conf/${device}/forwarding`)
            .find((parameter) => parameters.get(parameter) === "0")
            ?.replace(/^/, "net.")
            .replaceAll("/", ".");
  if (off === undefined) return [];
  return [
    {
      id: "forwarding_off",
      says: `this node does not forward packets: ${off} is 0`,
      show: [`sysctl ${off}`],
      fix: "switch it on, and in /etc/sysctl.d for the next boot",
      commands: [`sysctl -w ${off}=1`],
    },
  ];
}

function linkCauses(
  { family }: AskedPacket,
  { links, failedNeighbours, parameters }: WayFacts,
  device: string,
  nextHop: string,
): readonly Cause[] {
  const link = links.get(device);
  if (link === undefined) return [];
  const causes: Cause[] = [];
  if (!link.isUp || !link.hasCarrier) {
    const isBridge = link.bridge !== undefined;
    const without = isBridge ? "none of its ports is up" : "the other end is down or gone";
    const says = link.isUp ? `${device} has no carrier: ${without}` : `${device} is down`;
    causes.push({
      id: "device_down",
      says,
      show: [isBridge ? `ip link show master ${device}` : `ip link show ${device}`],
      ...(link.isUp
        ? {
            fix: isBridge
              ? "set the port up that leads there; where it is missing, the CNI sets it when it makes the pod: delete the pod, so that it is made again"
              : "bring the other end up (a pod's: delete the pod, its network namespace is broken; an uplink's: see cable, switch, virtual machine)",
          }
        : { fix: "set it up", commands: [`ip link set ${device} up`] }),
    });
  }
  if (family === "IPv6" && parameters.get(`ipv6/conf/${device}/disable_ipv6`) === "1")
    causes.push({
      id: "ipv6_off",
      says: `IPv6 is off on ${device}`,
      show: [`sysctl net.ipv6.conf.${device}.disable_ipv6`],
      fix: "switch it on",
      commands: [`sysctl -w net.ipv6.conf.${device}.disable_ipv6=0`],
    });
  if (failedNeighbours.has(`${nextHop} ${device}`))
    causes.push({
      id: "neighbour",
      says: `${nextHop} does not answer on ${device}: the kernel finds no link-layer address for it`,
      show: [`ip neigh show ${nextHop} dev ${device}`],
      fix: "see whether that host or pod is up, and on this link; then have the kernel ask again",
      commands: [`ip neigh flush dev ${device}`],
    });
  return causes;
}
