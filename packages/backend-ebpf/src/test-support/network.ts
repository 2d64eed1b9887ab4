// The network of the packet half's scenarios: this process's network namespace is the node, with an outside client, pods that are endpoints and a pod that asks.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

/** A network namespace. */
export type Place = "node" | "client" | "pods" | "pod";

/** Addresses of all endpoints but the asking pod's, by family. */
export const POD_ENDPOINTS: readonly string[] = [10, 11, 15, 16, 20, 25, 50, 55, 60, 65, 70, 75].flatMap((last) => [
  `10.1.1.${last}`,
  `fd00:1:1::${last}`,
]);

/** Addresses of endpoints at which nobody listens. */
export const CLOSED: readonly string[] = ["10.1.1.80", "fd00:1:1::80"];

/** The asking pod: the local endpoint of service number 9. */
export const POD = { IPv4: "10.1.1.90", IPv6: "fd00:1:1::90" } as const;

/** The node: its primary addresses, and those by which it reaches pods. */
export const NODE = { IPv4: "172.18.0.1", IPv6: "fd00:18::1", toPods: { IPv4: "10.1.1.1", IPv6: "fd00:1:1::1" } } as const;

/** The client: its addresses, and others that it has. */
export const CLIENT = {
  IPv4: "172.18.0.2",
  IPv6: "fd00:18::2",
  second: "172.18.0.3",
  far: { IPv4: "203.0.113.5", IPv6: "fd00:113::5" },
} as const;

/** Where the namespace of a place is. */
export function pathOf(place: Place): string {
  return place === "node" ? "/proc/thread-self/ns/net" : `/run/netns/${place}`;
}

/** A pair of devices: `name` at the node, eth0 at the place. Link-local addresses are given by hand, as the kernel takes a second to look for duplicates. */
function pair(place: Place, name: string): readonly string[] {
  return [
    `link add ${name} type veth peer name eth0 netns ${place}`,
    `link set ${name} addrgenmode none`,
    `link set ${name} up`,
    `addr add fe80::1/64 dev ${name} nodad`,
  ];
}

/** The same by bridges: the client's, and one for all pods. */
const BRIDGES: readonly string[] = [...bridge("outside", ["client"]), ...bridge("pods", ["pods", "pod"])];

function bridge(name: string, places: readonly Place[]): readonly string[] {
  const [, ...device] = pair("client", name);
  const ports = places.flatMap((place) => [...pair(place, `${place}-port`).slice(0, 3), `link set ${place}-port master ${name}`]);
  return [`link add ${name} type bridge`, ...device, ...ports];
}

function end(addresses: readonly string[]): readonly string[] {
  return [
    "link set lo up",
    "link set eth0 addrgenmode none",
    "link set eth0 up",
    "addr add fe80::2/64 dev eth0 nodad",
    ...addresses.map((address) => `addr add ${address} dev eth0${address.includes(":") ? " nodad" : ""}`),
  ];
}

/** Each pod has its address alone, and everything else behind the node. */
function podEnd(addresses: readonly string[]): readonly string[] {
  return [
    ...end(addresses.map((address) => `${address}/${address.includes(":") ? 128 : 32}`)),
    `route add default via ${NODE.toPods.IPv4} dev eth0 onlink`,
    "route add default via fe80::1 dev eth0",
  ];
}

/** Every place has a device of the node for itself. */
const DEVICES: readonly string[] = [...pair("client", "outside"), ...pair("pods", "pods"), ...pair("pod", "pod")];

/** What `ip` is told, in order. The client is the node's way out, too. */
const networkOf = (isBridged: boolean): readonly (readonly [options: readonly string[], lines: readonly string[]])[] => [
  [[], (["client", "pods", "pod"] as const).map((place) => `netns add ${place}`)],
  [
    [],
    [
      "link set lo up",
      ...(isBridged ? BRIDGES : DEVICES),
      `addr add ${NODE.IPv4}/24 dev outside`,
      `addr add ${NODE.IPv6}/64 dev outside nodad`,
      `addr add ${NODE.toPods.IPv4}/32 dev pods`,
      `addr add ${NODE.toPods.IPv6}/128 dev pods nodad`,
      `route add 10.1.1.0/24 dev pods src ${NODE.toPods.IPv4}`,
      `route add fd00:1:1::/64 dev pods src ${NODE.toPods.IPv6}`,
      ...(isBridged
        ? []
        : [`route add ${POD.IPv4}/32 dev pod src ${NODE.toPods.IPv4}`, `route add ${POD.IPv6}/128 dev pod src ${NODE.toPods.IPv6}`]),
      `route add default via ${CLIENT.IPv4}`,
      `route add default via ${CLIENT.IPv6}`,
    ],
  ],
  [
    ["-n", "client"],
    [
      ...end([`${CLIENT.IPv4}/24`, `${CLIENT.second}/24`, `${CLIENT.IPv6}/64`, `${CLIENT.far.IPv4}/32`, `${CLIENT.far.IPv6}/128`]),
      `route add default via ${NODE.IPv4}`,
      `route add default via ${NODE.IPv6}`,
    ],
  ],
  [["-n", "pods"], podEnd([...POD_ENDPOINTS, ...CLOSED])],
  [["-n", "pod"], podEnd([POD.IPv4, POD.IPv6])],
];

/** Make the network, with a device of the node for each place, or with bridges. Everything goes with this process's network and mount namespaces. */
export function makeNetwork(isBridged = false): void {
  run("mount", ["-t", "tmpfs", "none", "/run"]);
  mkdirSync("/run/netns");
  for (const [options, lines] of networkOf(isBridged)) run("ip", [...options, "-batch", "-"], lines.join("\n"));
  for (const name of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"]) writeFileSync(`/proc/sys/net/${name}`, "1");
  // The kernel sends a client so many refusals and then one a second.
  for (const name of ["ipv4/icmp_ratelimit", "ipv6/icmp/ratelimit"]) writeFileSync(`/proc/sys/net/${name}`, "0");
}

/** Run a program in this network namespace. @throws {Error} with what it says. */
export function run(file: string, args: readonly string[], input = ""): string {
  return execFileSync(file, args, { input, encoding: "utf8", stdio: ["pipe", "pipe", "pipe"], maxBuffer: 1 << 26 });
}

/** What the flows to an address of IPv4 have become in conntrack, by their answers: from whom to whom, each once. */
export function flows(address: string): readonly string[] {
  const lines = run("conntrack", ["-L", "-d", address]).split("\n");
  const answers = lines.flatMap((line) => {
    const [, from, to] = /src=\S+ dst=\S+ .*?src=(\S+) dst=(\S+)/.exec(line) ?? [];
    return from === undefined || to === undefined ? [] : [`${from} to ${to}`];
  });
  return [...new Set(answers)].toSorted();
}
