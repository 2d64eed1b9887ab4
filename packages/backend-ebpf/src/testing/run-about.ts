import type { Protocol } from "@turnout/core/backend";
import type { Conntrack } from "./conntrack.ts";
import type { Cpu } from "./cpu.ts";

/** What the kernel's functions know of the run they are called in. */
export interface RunAbout {
  readonly nowNs: () => bigint;
  /** In [0, 1). */
  readonly random: () => number;
  /** Whether a process of the network namespace listens there; the address has 16 bytes. */
  readonly listens: (protocol: Protocol, address: Buffer, port: number) => boolean;
  /** At hooks of sockets: who asks. */
  readonly socket: AskingSocket | undefined;
  /** At devices: the packet from its IP header on, and what else there is to ask. */
  readonly packet: PacketAbout | undefined;
}

/** A socket that asks for an address. */
export interface AskingSocket {
  readonly cookie: bigint;
  /** Cookie of its network namespace. */
  readonly namespace: bigint;
  /** With which error its call fails; below 0. */
  result: number;
}

/** A packet at a device. */
export interface PacketAbout {
  readonly bytes: Buffer;
  readonly conntrack: Conntrack;
  /** The source address that the route to an address has, as 16 bytes; undefined: there is no route, or no address. */
  readonly sourceTowards: (address: Buffer) => Buffer | undefined;
}

/** What a run is about. */
export function aboutOf(cpu: Cpu): RunAbout {
  return cpu.setting.about as RunAbout;
}
