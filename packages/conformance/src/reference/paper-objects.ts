import type { FlowFilter, IPFamily, KernelObject, LocalDetector, Rule, World } from "@turnout/core";
import type { HostAddress } from "../play/fake-host.ts";

/** What paper touches beyond what every backend may touch; only a host in memory has it, so paper makes none. */
export interface PaperWorld extends World {
  addresses(family: IPFamily): Promise<readonly HostAddress[]>;
  deleteFlows(family: IPFamily, flows: readonly FlowFilter[], signal: AbortSignal): Promise<number>;
  watchAddresses(signal: AbortSignal): AsyncIterable<void>;
}

/** What paper knows of a destination. */
export interface PaperDestination {
  /** The row it belongs to: what affinity is kept for. */
  readonly row: string;
  readonly rules: readonly Rule[];
  /** Who may ask, as CIDRs; empty: everybody. */
  readonly sources: readonly string[];
  /** Endpoints (`ip:port`) of each pool. */
  readonly cluster: readonly string[];
  readonly local: readonly string[];
  /** 0: none. */
  readonly affinitySeconds: number;
}

/** What paper knows of its node. */
export interface PaperNode {
  /** Absent: pods can't be told. */
  readonly detector?: LocalDetector;
  /** Addresses that answer node ports. */
  readonly nodePortAddresses: readonly string[];
  readonly serviceCIDRs: readonly string[];
  /** A packet with this mark bit has its source rewritten. */
  readonly masqueradeBit: number;
}

/**
 * Something written on paper.
 *
 * Shape: `node` (one, of the skeleton), `destination` (by address, port and protocol; a node port's address is `*`) and `clusterIP` (by
 * address: ports that no destination names are refused there).
 */
export interface PaperObject extends KernelObject {
  readonly kind: "node" | "destination" | "clusterIP";
}

/** What the paper backend asks of the host: its addresses in both families. */
export interface PaperFacts {
  readonly addresses: Readonly<Record<"IPv4" | "IPv6", readonly string[]>>;
}

/** One line for the tool `paper`: `add` must not find its object there, the others must. */
export interface PaperStep {
  readonly do: "add" | "replace" | "remove";
  readonly object: PaperObject;
}

/** The key of a destination; `address` is `*` for node ports. */
export function paperKey(address: string, port: number, protocol: string): string {
  return `${address} ${port}/${protocol}`;
}
