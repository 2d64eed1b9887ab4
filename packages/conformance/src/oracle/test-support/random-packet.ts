import { canonicalIP, hostPort } from "@turnout/core";
import type { IPFamily, Protocol } from "@turnout/core";
import { pickOne } from "@turnout/core/testing";
import type { OracleObject, OracleWorld } from "../oracle-world.ts";
import type { Flow, Packet } from "../packet.ts";
import { CLIENTS, CLUSTER_IPS, EXTERNAL_IPS, HOST_ADDRESSES, POD_IPS } from "./random-address.ts";
import type { Random } from "./random-address.ts";

const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];

/** Something that can be asked for. */
interface RequestAddress {
  readonly destination: string;
  readonly port: number;
  readonly protocol: Protocol;
}

/** Draw a packet; most concern the world's Services. */
export function randomPacket(world: OracleWorld, family: IPFamily, random: Random): Packet {
  const target = randomRequestAddress(world, family, undefined, random);
  // A host that has bound an address may use it as its source.
  const sources = [...CLIENTS[family], ...POD_IPS[family], ...HOST_ADDRESSES[family], ...EXTERNAL_IPS[family].slice(0, 2)];
  const source = random() < 0.25 ? target.destination : pickOne(sources, random);
  const link = random() < 0.2 ? "" : pickOne(["eth0", "veth1", "veth2"], random);
  return { family, source, ...target, link };
}

/** Draw a UDP flow, answered by a pod, by the address itself, or by a stranger. */
export function randomFlow(world: OracleWorld, family: IPFamily, random: Random): Flow {
  const { destination, port } = randomRequestAddress(world, family, "UDP", random);
  const answerer = random() < 0.15 ? destination : pickOne([...POD_IPS[family], ...POD_IPS[family], ...CLIENTS[family]], random);
  const endpoint = hostPort(answerer, answerer === destination ? port : pickOne([8080, 8080, 8081], random));
  return { family, source: pickOne(CLIENTS[family], random), destination, port, endpoint };
}

function randomRequestAddress(world: OracleWorld, family: IPFamily, only: Protocol | undefined, random: Random): RequestAddress {
  const wanted = world.objects
    .flatMap((object) => targetsOf(object, family))
    .filter(({ port, protocol }) => (only ?? protocol) === protocol && PROTOCOLS.includes(protocol) && Number.isInteger(port) && port > 0);
  if (wanted.length > 0 && random() < 0.8) return pickOne(wanted, random);
  const unallocated = family === "IPv4" ? "10.96.0.77" : "fd00:96::77";
  return {
    destination: pickOne([...CLUSTER_IPS[family], ...EXTERNAL_IPS[family], ...HOST_ADDRESSES[family], unallocated], random),
    port: pickOne([80, 53, 99, 30_001], random),
    protocol: only ?? pickOne(PROTOCOLS, random),
  };
}

/** What a Service may answer on, read as loosely as possible. */
function targetsOf(object: OracleObject, family: IPFamily): readonly RequestAddress[] {
  const { spec, status } = object as {
    readonly spec?: Record<string, unknown>;
    readonly status?: { readonly loadBalancer?: { readonly ingress: readonly { readonly ip: unknown }[] } };
  };
  if (object["kind"] !== "Service" || !Array.isArray(spec?.["ports"])) return [];
  const texts = [spec["clusterIPs"], spec["externalIPs"], status?.loadBalancer?.ingress.map(({ ip }) => ip)].flat();
  const addresses = texts
    .flatMap((text) => (typeof text === "string" ? (canonicalIP(text) ?? []) : []))
    .filter((ip) => ip.family === family);
  const ports = spec["ports"] as readonly { readonly port: number; readonly nodePort?: number; readonly protocol?: Protocol }[];
  return ports.flatMap(({ port, nodePort = 0, protocol = "TCP" }) => [
    ...addresses.map(({ text }) => ({ destination: text, port, protocol })),
    ...HOST_ADDRESSES[family].map((destination) => ({ destination, port: nodePort, protocol })),
  ]);
}
