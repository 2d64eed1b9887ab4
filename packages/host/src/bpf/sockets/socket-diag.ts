import { parseIP } from "@turnout/core";
import { ipText } from "../../netlink/host-addresses.ts";

/** Message types. @source linux/sock_diag.h */
export const SOCK_DIAG = { byFamily: 20, destroy: 21 } as const;

/** Protocols whose sockets can be ended from outside. @source linux/in.h */
export const SOCKET_PROTOCOL = { TCP: 6, UDP: 17 } as const;

/** One of them. */
export type SocketProtocol = keyof typeof SOCKET_PROTOCOL;

/** @source linux/socket.h AF_INET, AF_INET6 */
export const SOCKET_FAMILIES = [2, 10] as const;

/** A socket that is connected. Addresses are canonical; that of an IPv6 socket which speaks IPv4 is the IPv4 address. */
export interface ConnectedSocket {
  readonly protocol: SocketProtocol;
  readonly local: { readonly address: string; readonly port: number };
  readonly remote: { readonly address: string; readonly port: number };
  /** What programs get from bpf_get_socket_cookie: a socket's number for as long as the kernel runs. */
  readonly cookie: bigint;
  /** The body of the request that ends this very socket. */
  readonly destroyRequest: Buffer;
}

/**
 * States of sockets that have a remote end and that some program holds: no listening ones, none in TIME_WAIT. A connected UDP socket is "established".
 * @source Linux include/net/tcp_states.h
 */
const CONNECTED = [1, 2, 4, 5, 8, 9, 11].reduce((mask, state) => mask | (1 << state), 0);

// struct inet_diag_req_v2 and struct inet_diag_msg; both hold a struct inet_diag_sockid. @source linux/inet_diag.h
const REQUEST_BYTES = 56;
const REQUEST_ID = 8;
const ANSWER_ID = 4;
const ID_BYTES = 48;
const ID = { localPort: 0, remotePort: 2, local: 4, remote: 20, cookie: 40 } as const;

/** Before the four bytes of an IPv4 address, ::ffff:a.b.c.d. */
const MAPPED = `${"\0".repeat(10)}\xff\xff`;

/** The body of a request to list the connected sockets of a protocol and a family; with `states` 0 there are none. */
export function listRequest(protocol: SocketProtocol, family: number, states: number = CONNECTED): Buffer {
  const bytes = Buffer.alloc(REQUEST_BYTES);
  bytes[0] = family;
  bytes[1] = SOCKET_PROTOCOL[protocol];
  bytes.writeUInt32LE(states, 4);
  return bytes;
}

/** The remote end of a listed socket as bytes, to be compared with {@link endKeys}: of many sockets few are looked for. Undefined for what is no socket. */
export function remoteKey(payload: Buffer): string | undefined {
  if (payload.length < ANSWER_ID + ID_BYTES) return undefined;
  const port = payload.toString("latin1", ANSWER_ID + ID.remotePort, ANSWER_ID + ID.local);
  const at = ANSWER_ID + ID.remote;
  return port + payload.toString("latin1", at, at + (payload[0] === SOCKET_FAMILIES[0] ? 4 : 16));
}

/** What {@link remoteKey} gives for sockets that are connected to an end; a socket of IPv6 may speak IPv4. Empty for an address that is none. */
export function endKeys({ address, port }: ConnectedSocket["remote"]): readonly string[] {
  const ip = parseIP(address);
  if (ip === undefined) return [];
  const portBytes = Buffer.from([port >> 8, port & 255]).toString("latin1");
  const bytes = Buffer.from(ip.value.toString(16).padStart(ip.family === "IPv4" ? 8 : 32, "0"), "hex").toString("latin1");
  return ip.family === "IPv4" ? [portBytes + bytes, portBytes + MAPPED + bytes] : [portBytes + bytes];
}

/** Read a listed socket; copies what it needs. Edges: `payload` is one for which {@link remoteKey} gives a text. */
export function parseSocket(payload: Buffer, protocol: SocketProtocol): ConnectedSocket {
  const family = payload[0] ?? 0;
  const id = payload.subarray(ANSWER_ID, ANSWER_ID + ID_BYTES);
  const destroyRequest = listRequest(protocol, family);
  id.copy(destroyRequest, REQUEST_ID);
  const address = (at: number): string => ipText(id.subarray(at, at + (family === 2 ? 4 : 16)));
  return {
    protocol,
    local: { address: address(ID.local), port: id.readUInt16BE(ID.localPort) },
    remote: { address: address(ID.remote), port: id.readUInt16BE(ID.remotePort) },
    cookie: id.readBigUInt64LE(ID.cookie),
    destroyRequest,
  };
}
