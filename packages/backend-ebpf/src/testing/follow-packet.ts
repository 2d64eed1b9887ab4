import { PLACES, STAGE_NODE, UPLINK } from "@turnout/conformance";
import type { Packet, Trace } from "@turnout/conformance";
import { hostPort } from "@turnout/core/backend";
import type { Machine, Question } from "./machine.ts";
import type { NftInMemory } from "./nft-in-memory.ts";

/** What a packet meets on a host. */
export interface PacketWay {
  readonly machine: Pick<Machine, "connectFrom" | "receive">;
  readonly nft: Pick<NftInMemory, "rewrites" | "isRefused">;
  /** Whether an address is the host's own. */
  isLocal(address: string): boolean;
  /** Conntrack sees the first packet of a flow that stays; `endpoint` answers it, or else the destination itself. */
  remember(packet: Packet, endpoint: string | undefined): void;
}

/** Follow a packet: who has a socket on this node asks at it first; what goes on is a packet. SCTP has no hooks. */
export function followPacket(way: PacketWay, packet: Packet, question: Question): Trace {
  const place = placeOf(packet.link);
  if (place === undefined || packet.protocol === "SCTP") return pass(way, packet, question, []);
  const fate = way.machine.connectFrom(place, packet, question);
  if (fate.is === "refused") return { is: "reject", path: [`the socket of ${place} is refused`] };
  const { address: destination, port } = fate;
  if (destination === packet.destination && port === packet.port)
    return pass(way, packet, question, [`the socket of ${place} keeps its address`]);
  const endpoint = hostPort(destination, port);
  const trace = pass(way, { ...packet, destination, port }, { ...question, stays: false }, [`the socket of ${place} gets ${endpoint}`]);
  // Nobody rewrites what goes to an endpoint.
  return trace.is === "pass" ? { ...trace, is: "forward", endpoint, masquerade: false } : trace;
}

/** A packet meets the programs of the device by which it comes in or goes out. */
function pass({ machine, nft, isLocal, remember }: PacketWay, packet: Packet, question: Question, before: readonly string[]): Trace {
  const { link, destination, source } = packet;
  const isOut = link === "";
  // What the host sends to itself goes over lo.
  const device = isOut ? (isLocal(destination) ? "lo" : deviceTowards(destination)) : link;
  const { verdict, mark, flow } = machine.receive(device, isOut ? "egress" : "ingress", packet, question);
  const path = [...before, `${device}: ${verdict}${mark === 0 ? "" : `, mark 0x${mark.toString(16)}`}`];
  if (verdict === "shot") return { is: "drop", path };
  if (!isOut && nft.isRefused(mark)) return { is: "reject", path: [...path, "nft refuses it"] };
  const endpoint = flow === undefined || !nft.rewrites ? undefined : hostPort(flow.address, flow.port);
  if (question.stays) remember(packet, endpoint);
  if (endpoint === undefined) return { is: "pass", path };
  return { is: "forward", endpoint, masquerade: flow?.source !== source, path: [...path, `NAT: ${endpoint}, from ${flow?.source}`] };
}

/** Whose sockets send what comes in by a link of node1; undefined: nobody's here. */
function placeOf(link: string): string | undefined {
  if (link === "") return STAGE_NODE;
  return PLACES.find(({ kind, node, link: own }) => kind === "pod" && node === STAGE_NODE && own === link)?.name;
}

/** The device over which node1 reaches an address. */
function deviceTowards(address: string): string {
  const pod = PLACES.find(
    ({ node, kind, addresses }) => node === STAGE_NODE && kind === "pod" && Object.values(addresses).includes(address),
  );
  return pod?.link ?? UPLINK;
}
