import type { IPFamily, Protocol } from "@turnout/core";

/** node1's link to the other node and to the world; what comes in by another one is from a pod of node1. */
export const UPLINK = "eth0";

/** The first packet of a new connection, as it reaches the node. */
export interface Packet {
  readonly family: IPFamily;
  readonly protocol: Protocol;
  /** Canonical addresses. */
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  /** The link it comes in by, e.g. `veth1`; "" for a packet that the host itself sends. */
  readonly link: string;
  /** Bits that others have marked it with, a number of 32 bits; none by default. The proxy's own bit is never among them. */
  readonly mark?: number;
}

/** An endpoint that may answer, and whether it sees the packet's own source address. */
export interface AllowedEndpoint {
  /** `ip:port` ([ip]:port for IPv6). */
  readonly endpoint: string;
  readonly masquerade: boolean;
}

/**
 * What must become of a packet.
 *
 * Shape: `forward` to any one of `answers`, sorted by endpoint and never empty; `reject` is an ICMP port unreachable, `drop` silence, and
 * `pass` leaves the packet alone. `because` holds the numbers of the rules that decided, the most telling first.
 */
export type Verdict =
  | { readonly is: "forward"; readonly answers: readonly AllowedEndpoint[]; readonly because: readonly string[] }
  | { readonly is: "reject" | "drop" | "pass"; readonly because: readonly string[] };

/** A UDP flow the kernel remembers: who asked for what, and which endpoint (`ip:port`) answers. */
export interface Flow {
  readonly family: IPFamily;
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  readonly endpoint: string;
}
