// A network namespace whose processes ask, and the packets that really leave it.
import { closeSync, openSync } from "node:fs";
import type { Packet } from "@turnout/conformance";
import { unusableReason } from "@turnout/core/backend";
import { decodeAddress, encodeAddress } from "../bytes/layout.ts";
import { AF, awaitInput, c, ERRNO, errno, NETWORK, SOCKET, sure } from "./calls.ts";

/** What a call of connect or sendto came to. */
export type Asked =
  | { readonly is: "refused" }
  /** The packet that left. */
  | { readonly is: "goes"; readonly address: string; readonly port: number };

/** One end of a connection. */
interface End {
  readonly address: string;
  readonly port: number;
}

/** A packet that has left. */
interface Left extends End {
  readonly from: string;
  readonly fromPort: number;
}

/** How a process asks: by connect() or, without it, by sendto(); by a socket of IPv6 also for IPv4, at ::ffff:a.b.c.d. */
export interface Way {
  readonly by: "connect" | "sendto";
  readonly isMapped: boolean;
}

// @source linux/in.h, linux/in6.h, asm-generic/socket.h
const TRANSPARENT = { IPv4: [0, 19], IPv6: [41, 75] } as const;
const MARK = [1, 36] as const;
/** Packets with this mark stay in the place, if they are for it. */
export const STAYS_MARK = 1;
const IP_PROTOCOL: Readonly<Record<string, number>> = { TCP: 6, UDP: 17 };
/** @source linux/if_ether.h ETH_P_ALL, in network order */
const ALL_PACKETS = 0x0300;

const ANSWER_MS = 10_000;
const ONE = Buffer.from([1, 0, 0, 0]);

/** All ways to ask for a packet's destination. */
export function waysOf({ family, protocol }: Packet): readonly Way[] {
  const calls = protocol === "UDP" ? (["connect", "sendto"] as const) : (["connect"] as const);
  const kinds = family === "IPv4" ? [false, true] : [false];
  return kinds.flatMap((isMapped) => calls.map((by) => ({ by, isMapped })));
}

/** What a place is made of. */
export interface PlaceParts {
  /** The path of its network namespace. */
  readonly namespace: string;
  /** The device by which all goes out of it. */
  readonly wayOut: string;
  /** Whether an address is the place's own now. */
  owns(address: string): boolean;
  /** It is the node itself, and no pod. */
  readonly isNode: boolean;
}

/** A place of the stage, where sockets can be had. */
export class Place {
  readonly #namespace: number;
  readonly #home: number;
  readonly #capture: number;
  readonly #owns: PlaceParts["owns"];
  readonly #isNode: boolean;
  readonly #bytes = Buffer.alloc(128);

  constructor({ namespace, wayOut, owns, isNode }: PlaceParts) {
    this.#namespace = openSync(namespace, "r");
    this.#home = openSync("/proc/thread-self/ns/net", "r");
    this.#owns = owns;
    this.#isNode = isNode;
    this.#capture = this.run(() => openCapture(c.deviceNumber(wayOut)));
  }

  /** Call `run` in the namespace; what it opens stays there. */
  run<T>(run: () => T): T {
    sure(c.setns(this.#namespace, NETWORK), "setns");
    try {
      return run();
    } finally {
      sure(c.setns(this.#home, NETWORK), "setns");
    }
  }

  /** Ask with a fresh socket. `keep` gets the socket if it stays. */
  ask(packet: Packet, way: Way, keep?: (socket: number) => void): Asked {
    const { protocol } = packet;
    this.#drain();
    const isIPv4 = packet.family === "IPv4" && !way.isMapped;
    const kind = protocol === "TCP" ? SOCKET.stream : SOCKET.datagram;
    const socket = this.run(() => sure(c.socket(isIPv4 ? AF.inet : AF.inet6, kind, 0), "socket"));
    let isKept = false;
    try {
      if (!this.#owns(packet.source)) this.#takeAddress(socket, packet.source, isIPv4);
      const address = socketAddress(packet.destination, packet.port, isIPv4);
      if (this.#call(socket, address, packet, way) === "refused") return { is: "refused" };
      const sent = this.#left(IP_PROTOCOL[protocol] ?? 0);
      // The node's own packets meet programs on their way out, which may drop them.
      if (sent === undefined && !this.#isNode && unusableReason(packet.destination) === undefined)
        throw new Error(`nothing leaves a pod for ${packet.destination}`);
      if (sent !== undefined && protocol === "UDP") {
        if (way.by === "connect") requireShown(peerOf(socket), packet, "its peer");
        // Whoever answers has to have the address.
        if (this.#owns(packet.source) && unusableReason(sent.address) === undefined)
          requireShown(this.#answered(socket, sent), packet, "the sender of an answer");
      }
      if (keep !== undefined) {
        isKept = true;
        keep(socket);
      }
      const { address: to, port } = sent ?? { address: packet.destination, port: packet.port };
      return { is: "goes", address: to, port };
    } finally {
      if (!isKept) c.close(socket);
    }
  }

  close(): void {
    for (const fd of [this.#namespace, this.#home, this.#capture]) closeSync(fd);
  }

  #takeAddress(socket: number, source: string, isIPv4: boolean, port: number = 0): void {
    const [level, name] = TRANSPARENT[isIPv4 ? "IPv4" : "IPv6"];
    sure(c.setsockopt(socket, level, name, ONE, ONE.length), "setsockopt");
    const address = socketAddress(source, port, isIPv4);
    sure(c.bind(socket, address, address.length), `bind to ${source}`);
  }

  #call(socket: number, address: Buffer, packet: Packet, { by }: Way): "refused" | "sent" {
    if (by === "connect") {
      if (c.connect(socket, address, address.length) < 0 && errno() !== ERRNO.inProgress) return outcomeOf(errno(), packet);
      if (packet.protocol === "TCP") return "sent";
      sure(c.sendto(socket, ONE, 1, 0, null, 0), "sendto");
      return "sent";
    }
    return c.sendto(socket, ONE, 1, 0, address, address.length) < 0 ? outcomeOf(errno(), packet) : "sent";
  }

  /** Have whoever a datagram went to answer it; gives whom the socket takes for the sender. */
  #answered(socket: number, { from, fromPort, address, port }: Left): End | undefined {
    const isIPv4 = !address.includes(":");
    const server = this.run(() => sure(c.socket(isIPv4 ? AF.inet : AF.inet6, SOCKET.datagram, 0), "socket"));
    try {
      sure(c.setsockopt(server, ...MARK, Buffer.from([STAYS_MARK, 0, 0, 0]), 4), "setsockopt");
      this.#takeAddress(server, address, isIPv4, port);
      const client = socketAddress(from, fromPort, isIPv4);
      sure(c.sendto(server, ONE, 1, 0, client, client.length), "an endpoint answers");
      // It is there at once, unless the kernel is very busy.
      awaitInput(socket, ANSWER_MS);
      const sender = Buffer.alloc(28);
      return c.recvfrom(socket, Buffer.alloc(1), 1, 0, sender, Uint32Array.of(sender.length)) < 0 ? undefined : readEnd(sender);
    } finally {
      c.close(server);
    }
  }

  /** The first packet of this protocol that has left; undefined: none has. */
  #left(protocol: number): Left | undefined {
    for (;;) {
      const length = c.recv(this.#capture, this.#bytes, this.#bytes.length, 0);
      if (length < 0) return undefined;
      const packet = readPacket(this.#bytes.subarray(0, length));
      if (packet?.protocol === protocol) return packet;
    }
  }

  #drain(): void {
    while (c.recv(this.#capture, this.#bytes, this.#bytes.length, 0) >= 0);
  }
}

/** Addresses of groups and of links, which programs leave alone, the kernel itself may send nothing to. */
function outcomeOf(value: number, { destination }: Packet): "refused" | "sent" {
  if (value === ERRNO.refused) return "refused";
  if (unusableReason(destination) === undefined) throw new Error(`a socket that asks ${destination} gets an error: errno ${value}`);
  return "sent";
}

/** Packets that go out by a device: a socket of its own sees them where the device sends them, behind all programs. */
function openCapture(ifindex: number): number {
  const capture = sure(c.socket(AF.packet, SOCKET.datagram, ALL_PACKETS), "socket");
  // struct sockaddr_ll
  const address = Buffer.alloc(20);
  address.writeUInt16LE(AF.packet, 0);
  address.writeUInt16LE(ALL_PACKETS, 2);
  address.writeInt32LE(ifindex, 4);
  sure(c.bind(capture, address, address.length), "bind");
  return capture;
}

/** Write a struct sockaddr_in or sockaddr_in6. */
export function socketAddress(text: string, port: number, isIPv4: boolean): Buffer {
  const bytes = Buffer.alloc(isIPv4 ? 16 : 28);
  bytes.writeUInt16LE(isIPv4 ? AF.inet : AF.inet6, 0);
  bytes.writeUInt16BE(port, 2);
  if (isIPv4) encodeAddress(text).copy(bytes, 4, 12);
  else encodeAddress(text).copy(bytes, 8);
  return bytes;
}

function readPacket(bytes: Buffer): (Left & { readonly protocol: number }) | undefined {
  const isIPv4 = (bytes[0] ?? 0) >> 4 === 4;
  const ports = isIPv4 ? ((bytes[0] ?? 0) & 15) * 4 : 40;
  if (bytes.length < ports + 4) return undefined;
  const address = (at: number): string => (isIPv4 ? [...bytes.subarray(at, at + 4)].join(".") : decodeAddress(bytes.subarray(at, at + 16)));
  return {
    protocol: bytes[isIPv4 ? 9 : 6] ?? 0,
    from: address(isIPv4 ? 12 : 8),
    fromPort: bytes.readUInt16BE(ports),
    address: address(isIPv4 ? 16 : 24),
    port: bytes.readUInt16BE(ports + 2),
  };
}

/** Whom it asked is what a socket is shown, wherever it got. */
function requireShown(shown: End | undefined, { destination, port }: Packet, as: string): void {
  if (shown?.address === destination && shown.port === port) return;
  throw new Error(`a socket that asked ${destination} port ${port} is shown ${JSON.stringify(shown)} as ${as}`);
}

/** What a socket is shown as its peer; undefined: it has none. */
export function peerOf(socket: number): End | undefined {
  const bytes = Buffer.alloc(28);
  return c.getpeername(socket, bytes, Uint32Array.of(bytes.length)) < 0 ? undefined : readEnd(bytes);
}

/** Read a struct sockaddr_in or sockaddr_in6. */
function readEnd(bytes: Buffer): End {
  const isIPv4 = bytes.readUInt16LE(0) === AF.inet;
  const address = isIPv4 ? [...bytes.subarray(4, 8)].join(".") : decodeAddress(bytes.subarray(8, 24));
  return { address, port: bytes.readUInt16BE(2) };
}
