import { cidrContains, hostPort, objectId, parseCIDR, parseIP } from "@turnout/core";
import type { Packet, Trace } from "@turnout/conformance";
import type { KernelObject, LocalDetector, Origin, Plain } from "@turnout/core/backend";

/** What the table says of the host: its addresses, those that answer node ports, and how to tell its pods. */
export type Host = { readonly addresses: readonly string[]; readonly nodePorts: readonly string[]; readonly pods?: LocalDetector };

/** What happens to packets for one address and port: the first rule whose `from` fits decides. `to` lists servers as `ip:port`. */
export type Route = { readonly service: string; readonly sources: readonly string[]; readonly rules: readonly RouteRule[] };

/** One line of a route's policy. */
export type RouteRule = { readonly from: Origin; readonly to: readonly string[] | "reject" | "drop"; readonly masquerade: boolean };

/** What a file holds: values by kind and key of their objects. */
export type Table = Readonly<Record<string, Plain>>;

/** Write objects as a table. */
export function tableText(objects: ReadonlyMap<string, KernelObject>): string {
  const sorted = [...objects].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify(Object.fromEntries(sorted.map(([id, { value }]) => [id, value])), undefined, 2)}\n`;
}

/** Read a table as objects. What is no table counts as an empty one, and so is written anew. */
export function parseTable(text: string, complain: (why: string) => void): ReadonlyMap<string, KernelObject> {
  try {
    const objects = Object.entries(JSON.parse(text) as Table).map(([id, value]): KernelObject => {
      const space = id.indexOf(" ");
      return { kind: id.slice(0, space), key: id.slice(space + 1), value };
    });
    return new Map(objects.map((object) => [objectId(object), object]));
  } catch (error) {
    complain(String(error));
    return new Map();
  }
}

/** Do with a packet what every reader of the table has to. Pure: `random` in [0, 1) chooses the server. */
export function followPacket(table: Table, packet: Packet, random: () => number): Trace {
  const host = table["host self"] as Host | undefined;
  if (host === undefined) return { is: "pass", path: ["no table"] };
  const { protocol, source, destination, port } = packet;
  const isNodePort = host.nodePorts.includes(destination);
  const keys = [`route ${protocol} ${hostPort(destination, port)}`, ...(isNodePort ? [`route ${protocol} ${hostPort("*", port)}`] : [])];
  const key = keys.find((candidate) => candidate in table);
  if (key === undefined) return { is: "pass", path: [`no ${keys.join(", no ")}`] };
  const route = table[key] as Route;
  const rule = route.rules.find(({ from }) => fits(from, packet, host, route));
  const path = [`${key} of ${route.service}`, rule === undefined ? "no rule fits" : JSON.stringify(rule)];
  if (rule === undefined) return { is: "pass", path };
  if (rule.to === "reject" || rule.to === "drop") return { is: rule.to, path };
  const endpoint = rule.to[Math.floor(random() * rule.to.length)];
  if (endpoint === undefined) return { is: "drop", path };
  // A server that asks for its own service would answer itself, past the reader: it must see the host.
  const isHairpin = endpoint.startsWith(hostPort(source, 0).slice(0, -1));
  return { is: "forward", endpoint, masquerade: rule.masquerade || isHairpin, path };
}

function fits(from: Origin, packet: Packet, { addresses, pods }: Host, { sources }: Route): boolean {
  switch (from) {
    case "anyone":
      return true;
    case "thisHost":
      return addresses.includes(packet.source);
    case "outsideSourceRanges":
      return !isWithin(packet.source, sources);
    case "localPod":
      return isPod(packet, pods);
    case "offCluster":
      return !isPod(packet, pods);
  }
}

function isPod({ source, link }: Packet, pods: LocalDetector | undefined): boolean {
  if (pods === undefined) return false;
  if (pods.by === "cidr") return isWithin(source, pods.cidrs);
  return pods.by === "interface" ? link === pods.name : link.startsWith(pods.prefix);
}

function isWithin(address: string, cidrs: readonly string[]): boolean {
  const ip = parseIP(address);
  return ip !== undefined && cidrs.map(parseCIDR).some((cidr) => cidr !== undefined && cidrContains(cidr, ip));
}
