import { familyOf, parseIP } from "@turnout/core";
import type { SocketAddress } from "./sockets.ts";

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
/** Version 2, command PROXY. */
const VERSION_AND_COMMAND = 0x21;
const STREAM_OVER: Readonly<Record<"IPv4" | "IPv6", number>> = { IPv4: 0x11, IPv6: 0x21 };

/**
 * Write the header that tells an endpoint who its client is and where it asked. Pure.
 *
 * Shape: both addresses of one family, canonical.
 * @source https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
 */
export function proxyHeader(version: "v1" | "v2", client: SocketAddress, asked: SocketAddress): Uint8Array {
  const family = familyOf(client.ip);
  if (version === "v1")
    return new TextEncoder().encode(
      `PROXY ${family === "IPv4" ? "TCP4" : "TCP6"} ${client.ip} ${asked.ip} ${client.port} ${asked.port}\r\n`,
    );
  const ports = [client.port, asked.port].flatMap((port) => [port >> 8, port & 0xff]);
  const body = [...octets(client.ip), ...octets(asked.ip), ...ports];
  return Uint8Array.from([...SIGNATURE, VERSION_AND_COMMAND, STREAM_OVER[family], body.length >> 8, body.length & 0xff, ...body]);
}

function octets(text: string): readonly number[] {
  const ip = parseIP(text);
  if (ip === undefined) return [];
  const count = ip.family === "IPv4" ? 4 : 16;
  return Array.from({ length: count }, (_, index) => Number((ip.value >> BigInt(8 * (count - 1 - index))) & 0xffn));
}
