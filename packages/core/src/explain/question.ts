import type { Capabilities, Variants } from "../contract/capabilities.ts";
import type { EndpointSlice, IPFamily, Issue, Node, Protocol, Service } from "../model/api-objects.ts";
import type { NodeContext, ServicePort } from "../model/rows.ts";

/** The packet that is asked about: the first of a new connection, as it reaches this node. */
export interface AskedPacket {
  readonly family: IPFamily;
  readonly protocol: Protocol;
  /** Canonical, as the next one. */
  readonly source: string;
  readonly destination: string;
  /** The destination's, 1–65535. */
  readonly port: number;
  /** The device it comes in by; "" where this host itself sends it, {@link UNKNOWN_DEVICE} where nobody can tell. */
  readonly device: string;
  /** Nobody said by which device: it is taken to be the one that answers to the client would leave by. */
  readonly isDeviceAssumed?: boolean;
}

/** No device has this name. */
export const UNKNOWN_DEVICE = "?";

/** API objects behind the rows. Only the process that reads them has these. */
export interface KnownObjects {
  /** Every Service that counts, those without rows too. */
  services(): Iterable<Service>;
  /** The slices of the Service under `namespace/name`. */
  slices(serviceKey: string): ReadonlyMap<string, EndpointSlice>;
  /** Every Node that is known; absent: none but the own one. */
  nodes?(): Iterable<Node>;
}

/** A Service that is left to another proxy by its label. */
export interface HiddenService {
  readonly service: Service;
  readonly label: string;
}

/** Rows that the host refused, as the proxy that runs tells. */
export interface RefusedRows {
  /** The object that failed; undefined: all of a row, which is kept as it was. */
  readonly object: string | undefined;
  readonly rows: readonly string[];
  /** What the host said last. */
  readonly error: { readonly message: string; readonly hint?: string | undefined };
}

/** Where API objects come from, and how that is. */
export interface KnownSource {
  /** As the proxy was told, e.g. `kube` or `file:services.yaml`; undefined: nobody knows. */
  readonly name: string | undefined;
  /** What keeps parts of it from being followed now; empty: nothing. */
  readonly problems: readonly string[];
  /** It has no Service at all, of either family. */
  readonly isEmpty: boolean;
  /** It had some since the proxy started; absent: nobody knows. */
  readonly wasFilled?: boolean;
}

/** All that the desired state says of one node, in the family of the packet. */
export interface ExplainedState {
  readonly node: NodeContext;
  /** As the backend gets them: reduced to what it can do. */
  readonly rows: Iterable<ServicePort>;
  /** Addresses on this host's devices, canonical. */
  readonly hostAddresses: readonly string[];
  /** Where the settings leave it open which addresses answer node ports. */
  readonly nodePortAddressesDefault: readonly string[];
  readonly capabilities: Capabilities;
  readonly variants: Variants;
  /** What was reported about API objects and still holds. */
  readonly issues: readonly Issue[];
  readonly objects?: KnownObjects | undefined;
  readonly hidden?: readonly HiddenService[] | undefined;
  /** Absent: nobody knows. */
  readonly source?: KnownSource;
  /** Whom the dataplane leaves out, as `unserved` of the backend tells; absent: nobody. */
  readonly unserved?: (device: string) => string | undefined;
  /** What the host refuses now; absent: nobody knows. */
  readonly refusals?: readonly RefusedRows[];
}
