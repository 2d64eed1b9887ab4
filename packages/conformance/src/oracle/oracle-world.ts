import type { AllowedAddresses, Capability, IPFamily, NodeSettings, Variants } from "@turnout/core";

/** An API object as the API server holds it, whatever may be wrong with it. */
export type OracleObject = Readonly<Record<string, unknown>>;

/**
 * Everything a packet's fate depends on, in the form it has before any of our code has read it.
 *
 * Shape: plain data, both families; never changed once it was asked about, nor any object in it, because what was read of them is kept.
 * Edges: `objects` holds each object once, those with the labels that hide an object from service proxies too.
 */
export interface OracleWorld {
  readonly objects: readonly OracleObject[];
  readonly nodeName: string;
  readonly settings: NodeSettings;
  /** Stands in for the node's own primary address of its family (rule R-61). */
  readonly bindAddress?: string;
  /** Addresses on the host's links, canonical. */
  readonly hostAddresses: Readonly<Record<IPFamily, readonly string[]>>;
  /** What the backend takes where the settings leave `nodePortAddresses` undefined. */
  readonly nodePortAddressesDefault: readonly string[];
  /** What the backend can do, and which of the permitted behaviours it has. */
  readonly capabilities: Readonly<Record<Capability, true | string>>;
  readonly variants: Variants;
  /** Which addresses Services may have besides their cluster IPs (rules ); absent: any. */
  readonly allowedAddresses?: AllowedAddresses;
  /** `address port` of the servers that objects come from (rule R-74); absent: none. */
  readonly sourceAddresses?: readonly string[];
}
