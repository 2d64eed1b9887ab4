// Services, questions and the node that scenarios of packets have in common.
import type { ServiceFixture } from "@turnout/core/testing";
import type { EbpfFacts } from "../options.ts";
import { at } from "./clients.ts";
import type { How, Question } from "./clients.ts";
import { NODE } from "./network.ts";
import { startNode } from "./packet-node.ts";
import type { Attachment, PacketNode } from "./packet-node.ts";
import { place } from "./place.ts";

const HOWS: readonly How[] = ["tcp", "udp"];

/** A refusal of TCP may come while connect() still has the socket locked; the kernel ignores it then, and asks once more after a second. */
export const PATIENCE_MS = 2500;

/** One endpoint, on this node. */
export const PLAIN: ServiceFixture = { name: "plain", number: 1, local: 1 };

/** Of a Service that is reached from outside in every way. */
export const OUTER: NonNullable<ServiceFixture["spec"]> = {
  type: "LoadBalancer",
  nodePort: 30005,
  externalIPs: ["198.51.100.5", "fd00:51::5"],
};

/** The node's addresses, those by which it reaches pods too. */
export const ALL_ADDRESSES: EbpfFacts["addresses"] = { IPv4: [NODE.IPv4, NODE.toPods.IPv4], IPv6: [NODE.IPv6, NODE.toPods.IPv6] };

/** A node with programs from the object file of this process. */
export function node(attachment: Attachment = {}): Promise<PacketNode> {
  return startNode(place.objectFile, attachment);
}

/** A Service of each protocol, with one number. */
export function ofBoth(fixture: ServiceFixture): readonly ServiceFixture[] {
  return [fixture, { ...fixture, name: `${fixture.name}-udp`, protocol: "UDP" }];
}

/** By TCP and UDP, to an address of each family. */
export function atAll(addresses: readonly string[], port = 80): readonly Question[] {
  return HOWS.flatMap((how) => addresses.map((address) => at(how, address, port)));
}
