import type { IPFamily } from "@turnout/core";

/** The ends of a packet that sets know. */
export interface PacketEnds {
  /** `tcp`, `udp`, … */
  readonly protocol: string;
  /** Canonical. */
  readonly source: string;
  readonly sourcePort: number;
  /** Canonical. */
  readonly destination: string;
  readonly port: number;
}

/** Sets that rules may name, as a fake of iptables asks for them. */
export interface SetLookup {
  /** The family of a set's addresses; undefined: there is no such set. */
  familyOf(name: string): IPFamily | "any" | undefined;
  /** Whether a packet is in a set; a direction for each part of its entries. */
  has(name: string, packet: PacketEnds, directions: readonly ("src" | "dst")[]): boolean;
}

/** A host without sets. */
export const NO_SETS: SetLookup = { familyOf: () => undefined, has: () => false };
