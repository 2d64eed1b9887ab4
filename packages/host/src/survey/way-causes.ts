import { hostPort } from "@turnout/core";
import type { AskedPacket, Cause, Step } from "@turnout/core";
import { routeCommand } from "./route.ts";
import type { Route, RouteQuestion } from "./route.ts";
import type { Way, WayFacts } from "./way.ts";

/** Say where a packet goes to endpoints, those together that it goes to alike. Pure. */
export function waySteps(ways: readonly Way[]): readonly Step[] {
  const alike = Map.groupBy(ways, ({ there }) => {
    if (there.is === "none") return `the kernel finds no way (${there.says})`;
    if (there.isLocal) return "this host itself answers";
    return `it leaves by ${there.device}${there.nextHop === undefined ? "" : ` via ${there.nextHop}`}`;
  });
  return [...alike].map(([way, of]) => ({
    says: `to ${of.map(({ endpoint }) => hostPort(endpoint.ip, endpoint.port)).join(", ")}: ${way}`,
  }));
}

/** Say what keeps packets from going this way. Pure. */
export function wayCauses(packet: AskedPacket, way: Way, facts: WayFacts): readonly Cause[] {
  const { there, back, asked, askedBack, endpoint } = way;
  const device = there.is === "way" ? there.device : "";
  return [
    ...forwardingCauses(packet, way, facts),
    ...(there.is === "none" ? [lostCause(packet, there, asked, endpoint.ip, facts, "to")] : []),
    ...(back?.is === "none" ? [lostCause(packet, back, askedBack, packet.source, facts, "back")] : []),
    ...(there.is === "way" && !there.isLocal ? linkCauses(packet, facts, device, there.nextHop ?? endpoint.ip) : []),
    ...(back?.is === "way" && !back.isLocal && packet.device !== ""
      ? linkCauses(packet, facts, back.device, back.nextHop ?? packet.source)
      : []),
  ];
}

function lostCause(
  packet: AskedPacket,
  route: Extract<Route, { is: "none" }>,
  asked: RouteQuestion,
  to: string,
  facts: WayFacts,
  side: "to" | "back",
): Cause {
  const show = routeCommand(asked);
  if (route.why === "rp_filter") {
    const mend = `have the route to ${asked.from} lead by ${asked.by}, or loosen the check: sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.${asked.by}.rp_filter=2`;
    return {
      id: "rp_filter",
      says: `a packet from ${asked.from} that comes in by ${asked.by} is dropped: the way to ${asked.from} is another, and rp_filter is strict`,
      show,
      mend,
    };
  }
  if (route.why === "refused")
    return {
      id: "martian",
      says: `the kernel takes a packet from ${asked.from} to ${to}${asked.by === undefined ? "" : ` by ${asked.by}`} for one that can't be (martian)`,
      show,
      mend: `see who has these addresses: ip addr; is ${asked.from} an address of this host too?`,
    };
  const down = [...facts.links.values()].filter(({ isUp, name }) => !isUp && name !== "lo");
  const isNarrow = packet.family === "IPv6" && [...facts.links.values()].find(({ mtu, isUp }) => isUp && mtu < 1280);
  if (isNarrow)
    return {
      id: "mtu",
      says: `there is no IPv6 way to ${to}: the MTU of ${isNarrow.name} is ${isNarrow.mtu}, and IPv6 is off on devices below 1280`,
      show: `ip link show ${isNarrow.name}`,
      mend: `ip link set ${isNarrow.name} mtu 1500, or whatever the network carries (at least 1280), then set its addresses and routes again`,
    };
  const [off] = [...facts.parameters].filter(([name, value]) => name.endsWith("/disable_ipv6") && value === "1");
  if (packet.family === "IPv6" && off !== undefined) {
    const name = off[0].split("/")[2] ?? "";
    return {
      id: "ipv6_off",
      says: `there is no IPv6 way to ${to}: IPv6 is off on ${name}`,
      show: `sysctl net.ipv6.conf.${name}.disable_ipv6`,
      mend: `sysctl -w net.ipv6.conf.${name}.disable_ipv6=0, then set its addresses and routes again`,
    };
  }
  if (down.length > 0) {
    const names = down
      .map(({ name }) => name)
      .slice(0, 3)
      .join(", ");
    return {
      id: "device_down",
      says: `there is no way ${side === "to" ? `to ${to}` : `back to ${to}`} (${route.says}), and ${names} is down, which took its routes along`,
      show: `ip link show ${down[0]?.name}`,
      mend: `ip link set ${down[0]?.name} up, then set the routes again (the CNI's, for a pod: delete the pod)`,
    };
  }
  if (side === "back")
    return {
      id: "no_way_back",
      says: `there is no route back to ${to}: answers can't be sent (${route.says})`,
      show,
      mend: `add the route to the client's network: ip route add ${to} …, by the way it came`,
    };
  return {
    id: "no_route",
    says: `there is no route to ${to} (${route.says})`,
    show,
    mend: "see whether the CNI runs on this node and has set its routes: ip route; for a pod of this node, delete the pod",
  };
}

function forwardingCauses(packet: AskedPacket, { there, endpoint }: Way, { parameters }: WayFacts): readonly Cause[] {
  const isForwarded = packet.device !== "" && !(there.is === "way" && there.isLocal);
  if (packet.source.startsWith("127.") && !endpoint.ip.startsWith("127.") && !(there.is === "way" && there.isLocal)) {
    const isOn = ["all", there.is === "way" ? there.device : ""].some(
      (device) => parameters.get(`ipv4/conf/${device}/route_localnet`) === "1",
    );
    if (!isOn)
      return [
        {
          id: "localnet_off",
          says: "the packet comes from 127.0.0.1, and route_localnet is off",
          show: "sysctl net.ipv4.conf.all.route_localnet",
          mend: "ask an address of the node instead of 127.0.0.1",
        },
      ];
  }
  if (!isForwarded) return [];
  const devices = [packet.device, ...(there.is === "way" ? [there.device] : [])];
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
      show: `sysctl ${off}`,
      mend: `sysctl -w ${off}=1, and in /etc/sysctl.d for the next boot`,
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
    const says = link.isUp ? `${device} has no carrier: the other end is down or gone` : `${device} is down`;
    causes.push({
      id: "device_down",
      says,
      show: `ip link show ${device}`,
      mend: link.isUp ? "bring the other end up (for a pod: delete the pod, its network namespace is broken)" : `ip link set ${device} up`,
    });
  }
  if (family === "IPv6" && parameters.get(`ipv6/conf/${device}/disable_ipv6`) === "1")
    causes.push({
      id: "ipv6_off",
      says: `IPv6 is off on ${device}`,
      show: `sysctl net.ipv6.conf.${device}.disable_ipv6`,
      mend: `sysctl -w net.ipv6.conf.${device}.disable_ipv6=0`,
    });
  if (failedNeighbours.has(`${nextHop} ${device}`))
    causes.push({
      id: "neighbour",
      says: `${nextHop} does not answer on ${device}: the kernel finds no link-layer address for it`,
      show: `ip neigh show ${nextHop} dev ${device}`,
      mend: "see whether that host or pod is up, and on this link; then: ip neigh flush dev " + device,
    });
  return causes;
}
