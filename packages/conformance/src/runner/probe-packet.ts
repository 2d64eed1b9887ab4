import { canonicalIP } from "@turnout/core";
import type { IPFamily, Protocol } from "@turnout/core";
import type { Packet } from "../oracle/packet.ts";
import type { RawObject } from "@turnout/core/testing";
import type { Probe } from "./scenario.ts";
import { SERVICE_PORT } from "./short.ts";
import { stagePeer, STAGE_SETTINGS } from "./stage.ts";

type Addressed = NonNullable<Probe["as"]>;
type Way = "clusterIP" | "externalIP" | "loadBalancerIP" | "nodePort";

/**
 * Make the packet a probe means, in one family and protocol.
 * @param ownBit the mark bit of the proxy, by default the stage's; a probe that is marked bears all others
 * @param services every Service ever heard of, by name, as it last was
 * @throws {Error} when the probe names what isn't there.
 */
export function packetOf(
  probe: Probe,
  family: IPFamily,
  protocol: Protocol,
  services: ReadonlyMap<string, RawObject>,
  ownBit: number = STAGE_SETTINGS.masqueradeBit,
): Packet {
  const from = stagePeer(probe.from);
  const target = resolve(probe.to, family, protocol, services);
  const marks = probe.isMarked === true ? { mark: ~(1 << ownBit) >>> 0 } : {};
  const source = probe.as === undefined ? from.addresses[family] : resolve(probe.as, family, protocol, services).address;
  return { family, protocol, source, destination: target.address, port: probe.port ?? target.port, link: from.link, ...marks };
}

/** Say in a few words who asks for what. */
export function probeText({ from, as, to, port }: Probe): string {
  const text = (where: Addressed): string => (typeof where === "string" ? where : `${where.IPv4} or ${where.IPv6}`);
  return `${from}${as === undefined ? "" : ` as ${text(as)}`} → ${text(to)}${port === undefined ? "" : ` port ${port}`}`;
}

function resolve(
  to: Addressed,
  family: IPFamily,
  protocol: Protocol,
  services: ReadonlyMap<string, RawObject>,
): { readonly address: string; readonly port: number } {
  if (typeof to !== "string") return { address: to[family], port: SERVICE_PORT };
  const [name = "", way = ""] = to.split(" ");
  const [kind = "", place = ""] = way.split("@");
  const service = services.get(name);
  if (service === undefined) throw new Error(`no Service was ever called ${JSON.stringify(name)}`);
  const ports = listOf(fieldAt(service, "spec", "ports"));
  const port = ports.find((one) => (fieldAt(one, "protocol") ?? "TCP") === protocol) ?? ports[0];
  if (kind === "nodePort") return { address: stagePeer(place).addresses[family], port: Number(fieldAt(port, "nodePort")) };
  const address = addressesBy(kind as Way, service)
    .map((text) => canonicalIP(String(text)))
    .find((one) => one?.family === family);
  if (address === undefined) throw new Error(`${name} has no ${way} of ${family}`);
  return { address: address.text, port: Number(fieldAt(port, "port") ?? SERVICE_PORT) };
}

/** An address and port somebody may ask for. */
export interface PacketTarget {
  readonly address: string;
  readonly port: number;
  readonly protocol: Protocol;
}

/** List what Services answer on in one family, as far as it can be read: node ports on these addresses of a node. */
export function targetsOf(objects: readonly RawObject[], family: IPFamily, nodeAddresses: readonly string[]): readonly PacketTarget[] {
  return objects.flatMap((service) => {
    const texts = (["clusterIP", "externalIP", "loadBalancerIP"] as const).flatMap((way) => addressesBy(way, service));
    const addresses = texts.map((text) => canonicalIP(String(text))).filter((ip) => ip?.family === family);
    const targets = listOf(fieldAt(service, "spec", "ports")).flatMap((port): readonly PacketTarget[] => {
      const protocol = (fieldAt(port, "protocol") ?? "TCP") as Protocol;
      const own = addresses.map((ip) => ({ address: ip?.text ?? "", port: Number(fieldAt(port, "port")), protocol }));
      return [...own, ...nodeAddresses.map((address) => ({ address, port: Number(fieldAt(port, "nodePort") ?? 0), protocol }))];
    });
    return targets.filter(({ port }) => Number.isInteger(port) && port > 0 && port < 65_536);
  });
}

function addressesBy(way: Way, service: RawObject): readonly unknown[] {
  if (way === "externalIP") return listOf(fieldAt(service, "spec", "externalIPs"));
  if (way === "loadBalancerIP") return listOf(fieldAt(service, "status", "loadBalancer", "ingress")).map((entry) => fieldAt(entry, "ip"));
  return [...listOf(fieldAt(service, "spec", "clusterIPs")), fieldAt(service, "spec", "clusterIP")];
}

/** What is there in a malformed object, too; undefined: nothing. */
export function fieldAt(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((one, name) => (typeof one === "object" && one !== null ? (one as RawObject)[name] : undefined), value);
}

/** What is no list is an empty one. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
