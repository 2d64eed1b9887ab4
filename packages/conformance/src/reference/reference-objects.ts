import type { FlowFilter, IPFamily, KernelObject, LocalDetector, Rule, World } from "@turnout/core";
import type { HostAddress } from "../runner/fake-host.ts";

/** What reference touches beyond what every backend may touch; only a host in memory has it, so reference makes none. */
export interface ReferenceWorld extends World {
  addresses(family: IPFamily): Promise<readonly HostAddress[]>;
  deleteFlows(family: IPFamily, flows: readonly FlowFilter[], signal: AbortSignal): Promise<number>;
  /** What happens from now on, but for what the tool `reference` does. */
  watchHost(signal: AbortSignal): AsyncIterable<ReferenceEvent>;
  /** How many connections each destination had, by its key. */
  connections(family: IPFamily): Promise<ReadonlyMap<string, number>>;
}

/** The host has other addresses, or somebody wrote an object (by its {@link objectId}). */
export type ReferenceEvent = { readonly kind: "addresses" } | { readonly kind: "hand"; readonly family: IPFamily; readonly id: string };

/** What reference knows of a destination. */
export interface ReferenceDestination {
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

/** What reference knows of its node. */
export interface ReferenceNode {
  /** Absent: pods can't be told. */
  readonly detector?: LocalDetector;
  /** Addresses that answer node ports. */
  readonly nodePortAddresses: readonly string[];
  readonly serviceCIDRs: readonly string[];
  /** A packet with this mark bit has its source rewritten. */
  readonly masqueradeBit: number;
}

/**
 * Something written on the reference backend.
 *
 * Shape: `node` (one, of the skeleton), `destination` (by address, port and protocol; a node port's address is `*`) and `clusterIP` (by
 * address: ports that no destination names are refused there).
 */
export interface ReferenceObject extends KernelObject {
  readonly kind: "node" | "destination" | "clusterIP";
}

/** What the reference backend asks of the host: its addresses in both families. */
export interface ReferenceFacts {
  readonly addresses: Readonly<Record<"IPv4" | "IPv6", readonly string[]>>;
}

/** One line for the tool `reference`: `add` must not find its object there, the others must. */
export interface ReferenceStep {
  readonly do: "add" | "replace" | "remove";
  readonly object: ReferenceObject;
}

/** The key of a destination; `address` is `*` for node ports. */
export function referenceKey(address: string, port: number, protocol: string): string {
  return `${address} ${port}/${protocol}`;
}
