import type { World } from "@turnout/core";
import type { Flow, Packet } from "../oracle/packet.ts";

/** An address of the host, and the link it is on. */
export interface HostAddress {
  /** Canonical. */
  readonly ip: string;
  readonly prefixLength: number;
  /** The link's name, e.g. `eth0`. */
  readonly link: string;
}

/**
 * A host that exists in memory and is as strict as the real one: what a backend's door `./testing` exports for the kit.
 *
 * Shape: the backend gets `world` and nothing else; the kit looks at the host from the other side. One host serves both families.
 * Edges: it refuses what the real tool or kernel refuses, applies as atomically as they do, and starts with some objects that are not the
 * backend's.
 */
export interface FakeHost {
  /** What the backend's module touches: in the place of what its `createWorld` makes. */
  readonly world: World;
  /** Let time pass: `world.clock` moves, sleepers wake, timeouts run out. */
  advance(ms: number): Promise<void>;
  /** Replace the host's addresses. */
  setAddresses(addresses: readonly HostAddress[]): void;
  /**
   * Follow the first packet of a connection through what is in force; nothing stays behind.
   *
   * `random` in [0, 1) makes the kernel's random choices.
   */
  trace(packet: Packet, random: () => number): Trace;
  /** As {@link FakeHost.trace}, with the traces a connection leaves: affinity, and for UDP a flow. */
  connect(packet: Packet, random: () => number): Trace;
  /** UDP flows the kernel remembers. */
  readonly flows: readonly Flow[];
  /** Have one of the next calls of the tool fail; see {@link Fault}. Undefined: no more failures. */
  setFault(fault: Fault | undefined): void;
  /** Refuse from now on whatever change names one of these addresses, as the real host refuses what it can't take; none: refuse nothing. */
  refuse(addresses: readonly string[]): void;
  /** A foreign hand deletes, changes or adds one thing among the backend's own; returns what, or undefined when there is nothing. */
  tamper(random: () => number): string | undefined;
  /** Everything of the backend's that is in force, in a form that two equal hosts share; leftovers that wait for their deletion aside. */
  own(): readonly string[];
  /**
   * How many things of {@link FakeHost.own}'s kind were written since the host was made: made, changed or removed, and those that were
   * written as they were. Absent where the dataplane takes everything as a whole, such as a file: then a report says that it wasn't asked about.
   */
  written?(): number;
  /**
   * How many connections the dataplane's own counters have counted since the host was made, of those that {@link FakeHost.connect} made through it. Absent
   * where the host counts nothing: then a report says that it wasn't asked about.
   */
  counted?(): number;
  /**
   * Have `look` called whenever the backend has changed something by another way than `world.exec`, whose every call the kit sees. Absent where there is
   * none, or where a change takes effect as a whole.
   */
  onChange?(look: () => void): void;
  /** Everything that isn't the backend's, in the same form. */
  external(): readonly string[];
}

/** What a host may leave out of {@link FakeHost}; then what it would show isn't looked at. */
export type OptionalMember = "written" | "onChange" | "counted";

/** When the next change of the host fails: nothing of it done, part of it (where it isn't atomic) or all of it done. */
export interface Fault {
  readonly when: "before" | "during" | "after";
  /** How many changes succeed first. */
  readonly afterChanges: number;
}

/** What became of a packet. */
export interface Trace {
  readonly is: "forward" | "reject" | "drop" | "pass";
  /** `ip:port` it was sent to, when forwarded. */
  readonly endpoint?: string;
  /** Whether its source was rewritten. */
  readonly masquerade?: boolean;
  /** The way it took, one line each, for people. */
  readonly path: readonly string[];
}

/** Makes a host for one run of the kit. */
export type CreateFakeHost = () => FakeHost;
