import { canonicalIP } from "@turnout/core";
import type { IPFamily, Protocol } from "@turnout/core";
import type { ReadFile } from "../tables/external-tables.ts";

/** Files of sockets below /proc/net, and the state of those that wait for anybody. @source linux/net/ipv4/tcp_ipv4.c, udp.c, net/tcp_states.h */
const SOCKETS: Readonly<Partial<Record<Protocol, { readonly file: string; readonly state: string }>>> = {
  TCP: { file: "tcp", state: "0A" },
  UDP: { file: "udp", state: "07" },
};

/** Where packets are to be taken. */
export interface Listening {
  readonly family: IPFamily;
  readonly protocol: Protocol;
  readonly ip: string;
  readonly port: number;
}

/**
 * Tell whether a program of this host waits for packets at one of its addresses; undefined: it can't be told.
 *
 * Edges: a socket of all IPv6 addresses is taken to serve IPv4, too.
 */
export async function isListening(read: ReadFile, { family, protocol, ip, port }: Listening): Promise<boolean | undefined> {
  const sockets = SOCKETS[protocol];
  if (sockets === undefined) return undefined;
  const [four, six] = await Promise.all([family === "IPv4" ? read(`/proc/net/${sockets.file}`) : "", read(`/proc/net/${sockets.file}6`)]);
  // Without IPv6 there is no second file.
  if (four === undefined || (family === "IPv6" && six === undefined)) return undefined;
  const anywhere = ["::", ...(family === "IPv4" ? ["0.0.0.0", `::ffff:${ip}`] : [])].flatMap((text) => canonicalIP(text)?.text ?? []);
  const wanted = new Set([ip, ...anywhere]);
  return [four, six ?? ""].some((text) => addressesAt(text, sockets.state, port).some((address) => wanted.has(address)));
}

/** The addresses at which sockets of this state have this port. */
function addressesAt(text: string, state: string, port: number): readonly string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const found = text.matchAll(new RegExp(`^ *\\d+: ([0-9A-F]+):${hex} [0-9A-F]+:[0-9A-F]+ ${state} `, "gm"));
  return Array.from(found, ([, address = ""]) => addressText(address));
}

/** Words of four bytes, each in this machine's order, which is little-endian. */
function addressText(hex: string): string {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) => (word.match(/../g) ?? []).toReversed());
  if (bytes.length === 4) return bytes.map((byte) => Number.parseInt(byte, 16)).join(".");
  return canonicalIP((bytes.join("").match(/.{4}/g) ?? []).join(":"))?.text ?? "";
}
