import {
  canonicalIP,
  familyOf,
  ProxyError,
  UNKNOWN_DEVICE,
  type AskedPacket,
  type Exec,
  type IPFamily,
  type Protocol,
} from "@turnout/core";
import { routeFor } from "@turnout/host/survey";

/** What was typed. */
export interface TypedQuestion {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  /** The device that the packet comes in by; undefined: the one that answers would leave by. */
  readonly in?: string;
}

/** A question, read: the sender is an address, or this host itself. */
export interface ParsedQuestion {
  /** An address, or `host`. */
  readonly from: string;
  readonly destination: string;
  readonly port: number;
  readonly protocol: Protocol;
  readonly family: IPFamily;
}

const PROTOCOLS: readonly Protocol[] = ["TCP", "UDP", "SCTP"];

/** Read FROM TO:PORT. Pure. @throws {ProxyError} `invalid_object` naming what can't be read. */
export function parseQuestion({ from, to, protocol }: TypedQuestion): ParsedQuestion {
  const [, address = "", portText = "", said = protocol] = /^\[?([^\]]*)\]?:(\d+)(?:\/(\w+))?$/.exec(to) ?? [];
  const destination = canonicalIP(address);
  const port = Number(portText);
  if (destination === undefined || port < 1 || port > 65_535)
    throw new ProxyError("invalid_object", "no address and port", {
      object: to,
      hint: "write 10.96.0.1:80, [fd00::1]:80 or 10.96.0.1:53/udp",
    });
  const known = PROTOCOLS.find((one) => one === said.toUpperCase());
  if (known === undefined) throw new ProxyError("invalid_object", "unknown protocol", { object: said, hint: "use tcp, udp or sctp" });
  const source = from === "host" ? "host" : canonicalIP(from)?.text;
  if (source === undefined)
    throw new ProxyError("invalid_object", "no address of a client", {
      object: from,
      hint: "write the client's IP address, e.g. a pod's, or host for this node itself",
    });
  return { from: source, destination: destination.text, port, protocol: known, family: destination.family };
}

/** Where a packet comes from: its source address, and the device it comes in by ("": this host sends it). */
export async function locatePacket(
  question: ParsedQuestion,
  given: string | undefined,
  hostAddresses: readonly string[],
  exec: Exec,
  signal: AbortSignal,
): Promise<AskedPacket> {
  const { from, family, protocol, destination, port } = question;
  const packet = { family, protocol, destination, port };
  if (from === "host") {
    const route = await routeFor(exec, family, { to: destination }, signal);
    const [first = family === "IPv4" ? "127.0.0.1" : "::1"] = hostAddresses;
    return { ...packet, source: (route.is === "way" ? route.source : undefined) ?? first, device: "" };
  }
  if (given !== undefined) return { ...packet, source: from, device: given };
  return await locateAddress({ ...packet, source: from }, hostAddresses, exec, signal);
}

/** Tell by which device a client's packets come in: the one that answers would leave by. */
export async function locateAddress(
  packet: Omit<AskedPacket, "device">,
  hostAddresses: readonly string[],
  exec: Exec,
  signal: AbortSignal,
): Promise<AskedPacket> {
  const { source, family } = packet;
  const isHosts = hostAddresses.includes(source) || source.startsWith("127.") || source === "::1";
  if (isHosts) return { ...packet, device: "" };
  const route = familyOf(source) === family ? await routeFor(exec, family, { to: source }, signal) : undefined;
  return { ...packet, device: route?.is === "way" ? route.device : UNKNOWN_DEVICE };
}
