import type { Flow, HostAddress, Packet } from "@turnout/conformance";
import type { Direction } from "@turnout/host/bpf";
import type { EbpfWorld } from "../world.ts";

/** What carries out the compiled programs for the host of the conformance kit: a kernel in memory, or this machine's. */
export interface Machine {
  /** What the backend's world has of it. */
  readonly world: Pick<
    EbpfWorld,
    | "bpf"
    | "pinFiles"
    | "objectFiles"
    | "buildOf"
    | "probeBpf"
    | "mounts"
    | "namespaceCookie"
    | "cgroupNumber"
    | "writeText"
    | "namespaces"
    | "sockets"
    | "netlink"
  >;
  /** UDP flows that it remembers: sockets that are connected, and those of conntrack. */
  readonly flows: readonly Flow[];
  /** Replace the addresses of node1. */
  setAddresses(addresses: readonly HostAddress[]): void;
  /** Let this much time pass for what programs have noted. */
  age(ms: number): void;
  /** A process of a place (`node1`, or a pod of it) asks for a packet's destination: what the programs at sockets make of that. */
  connectFrom(place: string, packet: Packet, question: Question): SocketFate;
  /** A packet comes in by a device of node1, or goes out by it: what the programs at the device make of it, and of its flow. */
  receive(device: string, direction: Direction, packet: Packet, question: Question): PacketFate;
}

/** How a machine is asked. */
export interface Question {
  /** In [0, 1): the kernel's choices, where the machine can be told them. */
  readonly random: () => number;
  /** Whether what the packet leaves behind (affinity, a UDP flow) stays. */
  readonly stays: boolean;
}

/** What becomes of a question at a socket: it fails at once, or goes on to an address, perhaps another one. */
export type SocketFate = { readonly is: "refused" } | { readonly is: "goes"; readonly address: string; readonly port: number };

/** What becomes of a packet at a device. */
export interface PacketFate {
  readonly verdict: "next" | "shot";
  /** Its mark after the programs. */
  readonly mark: number;
  /** What the kernel's NAT will make of it; undefined: nothing. */
  readonly flow: { readonly address: string; readonly port: number; readonly source: string } | undefined;
}
