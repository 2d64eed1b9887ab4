import type { CgroupHook } from "@turnout/host/bpf";
import { Value } from "./cpu.ts";
import type { Cpu } from "./cpu.ts";

/** Where the fields of a program's context at a hook of sockets lie. @source linux/bpf.h struct bpf_sock_addr, struct bpf_sock */
const ADDRESS = { family: 0, ip4: 4, ip6: 8, port: 24, socketFamily: 28, type: 32, protocol: 36, socket: 64, bytes: 72 } as const;
const SOCKET = { family: 4, type: 8, protocol: 12, toPort: 48, toIp4: 52, toIp6: 56, state: 72, bytes: 80 } as const;
const FAMILY = { IPv4: 2, IPv6: 10 } as const;
const TYPE: Readonly<Record<number, number>> = { 6: 1, 17: 2, 132: 1 };
const STATE = { established: 1, closed: 7 } as const;
const NOTHING: ReadonlySet<number> = new Set();
const WRITABLE: Readonly<Record<"4" | "6", ReadonlySet<number>>> = {
  "4": new Set([ADDRESS.ip4, ADDRESS.port]),
  "6": new Set([ADDRESS.ip6, ADDRESS.ip6 + 4, ADDRESS.ip6 + 8, ADDRESS.ip6 + 12, ADDRESS.port]),
};

/** What a socket asks for, or hears from. The address is 16 bytes, IPv4 as ::ffff:a.b.c.d. */
export interface SocketAddress {
  readonly address: Buffer;
  readonly port: number;
}

/** A context of a program at a hook of sockets. */
export class SocketContext extends Value {
  readonly #isIPv4: boolean;
  readonly #socket = new Value(Buffer.allocUnsafe(SOCKET.bytes).fill(0), NOTHING);

  constructor(hook: CgroupHook, { address, port }: SocketAddress, protocol: number, isConnected: boolean) {
    super(Buffer.allocUnsafe(ADDRESS.bytes).fill(0), WRITABLE[hook.endsWith("4") ? "4" : "6"]);
    this.#isIPv4 = hook.endsWith("4");
    const family = FAMILY[this.#isIPv4 ? "IPv4" : "IPv6"];
    this.bytes.writeUInt32LE(family, ADDRESS.family);
    this.bytes.writeUInt32LE(family, ADDRESS.socketFamily);
    this.bytes.writeUInt32LE(TYPE[protocol] ?? 0, ADDRESS.type);
    this.bytes.writeUInt32LE(protocol, ADDRESS.protocol);
    if (this.#isIPv4) address.copy(this.bytes, ADDRESS.ip4, 12, 16);
    else address.copy(this.bytes, ADDRESS.ip6, 0, 16);
    this.bytes.writeUInt16BE(port, ADDRESS.port);
    this.#socket.bytes.writeUInt32LE(isConnected ? STATE.established : STATE.closed, SOCKET.state);
  }

  /** Let a run that begins reach the socket. */
  override begin(cpu: Cpu): void {
    this.bytes.writeUInt32LE(0, ADDRESS.socket);
    this.bytes.writeUInt32LE(cpu.regionOf(this.#socket), ADDRESS.socket + 4);
  }

  /** The address as programs have left it. */
  get result(): SocketAddress {
    const address = Buffer.alloc(16);
    if (this.#isIPv4) {
      address.writeUInt16BE(0xffff, 10);
      this.bytes.copy(address, 12, ADDRESS.ip4, ADDRESS.ip4 + 4);
    } else this.bytes.copy(address, 0, ADDRESS.ip6, ADDRESS.ip6 + 16);
    return { address, port: this.bytes.readUInt16BE(ADDRESS.port) };
  }
}

/** The context of a program that is called when a socket is closed. */
export class ClosingContext extends Value {
  constructor(isIPv4: boolean, protocol: number, peer: SocketAddress | undefined) {
    super(Buffer.alloc(SOCKET.bytes), NOTHING);
    this.bytes.writeUInt32LE(FAMILY[isIPv4 ? "IPv4" : "IPv6"], SOCKET.family);
    this.bytes.writeUInt32LE(TYPE[protocol] ?? 0, SOCKET.type);
    this.bytes.writeUInt32LE(protocol, SOCKET.protocol);
    this.bytes.writeUInt32LE(peer === undefined ? STATE.closed : STATE.established, SOCKET.state);
    if (peer === undefined) return;
    this.bytes.writeUInt16BE(peer.port, SOCKET.toPort);
    if (isIPv4) peer.address.copy(this.bytes, SOCKET.toIp4, 12, 16);
    else peer.address.copy(this.bytes, SOCKET.toIp6, 0, 16);
  }
}

/** Where the fields of a packet's context lie. @source linux/bpf.h struct __sk_buff */
const SKB = { length: 0, type: 4, mark: 8, protocol: 16, priority: 32, ingress: 36, device: 40, class: 44, cb: 48, bytes: 192 } as const;
const SKB_WRITABLE: ReadonlySet<number> = new Set([SKB.mark, SKB.priority, SKB.class, ...[0, 4, 8, 12, 16].map((at) => SKB.cb + at)]);

/** What a program sees of a packet beside its bytes. */
export interface SkbState {
  /** From the IP header on. */
  readonly bytes: Buffer;
  readonly mark: number;
  readonly priority: number;
  /** The device it came in by; 0: it comes from here. */
  readonly ingressIfindex: number;
  /** The device it is on. */
  readonly ifindex: number;
}

/** A context of a program of tc. */
export class SkbContext extends Value {
  constructor({ bytes, mark, priority, ingressIfindex, ifindex }: SkbState) {
    super(Buffer.allocUnsafe(SKB.bytes).fill(0), SKB_WRITABLE);
    // With the Ethernet header.
    this.bytes.writeUInt32LE(bytes.length + 14, SKB.length);
    this.bytes.writeUInt32LE(mark, SKB.mark);
    this.bytes.writeUInt32LE(priority, SKB.priority);
    this.bytes.writeUInt16BE((bytes[0] ?? 0) >> 4 === 4 ? 0x0800 : 0x86dd, SKB.protocol);
    this.bytes.writeUInt32LE(ingressIfindex, SKB.ingress);
    this.bytes.writeUInt32LE(ifindex, SKB.device);
  }

  get mark(): number {
    return this.bytes.readUInt32LE(SKB.mark);
  }

  get priority(): number {
    return this.bytes.readUInt32LE(SKB.priority);
  }
}
