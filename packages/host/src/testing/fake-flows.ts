import { familyOf, hostPort } from "@turnout/core";
import type { Flow, Packet } from "@turnout/conformance";
import type { FakeFlow, FakeNetlink } from "./fake-netlink.ts";

const SOURCE_PORT = 40_000;

/**
 * Have conntrack remember the UDP flow that a packet begins, which `endpoint` (`ip:port`) answers; undefined: its destination itself.
 *
 * Edges: other protocols leave nothing here. Every client sends from the same port, so the same flow again is no other one.
 */
export function rememberFlow(netlink: FakeNetlink, packet: Packet, endpoint: string | undefined): void {
  if (packet.protocol !== "UDP") return;
  const destination = hostPort(packet.destination, packet.port);
  const flow: FakeFlow = {
    protocol: "UDP",
    source: hostPort(packet.source, SOURCE_PORT),
    destination,
    replySource: endpoint ?? destination,
  };
  if (!netlink.flows.some((other) => isSame(other, flow))) netlink.addFlow(flow);
}

/** List the flows that conntrack remembers, as the conformance kit wants them. */
export function flowsOf(netlink: FakeNetlink): readonly Flow[] {
  return netlink.flows.map(({ source, destination, replySource }) => {
    const [from, to] = [splitHostPort(source), splitHostPort(destination)];
    return { family: familyOf(to.ip), source: from.ip, destination: to.ip, port: to.port, endpoint: replySource };
  });
}

function isSame(a: FakeFlow, b: FakeFlow): boolean {
  return a.protocol === b.protocol && a.source === b.source && a.destination === b.destination && a.replySource === b.replySource;
}

function splitHostPort(text: string): { readonly ip: string; readonly port: number } {
  const colon = text.lastIndexOf(":");
  return { ip: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
}
