import type { IPFamily } from "@turnout/core/backend";
import type { RemoteSubnet } from "./hns/replies.ts";

/** Networks that this backend works in; an L2Tunnel is like an L2Bridge here. */
export type NetworkKind = "l2bridge" | "overlay";

/** What rendering knows of the host. */
export interface WinkernelFacts {
  readonly network: NetworkKind;
  /** Pods of other hosts, and where they are; empty but on an overlay. */
  readonly remoteSubnets: readonly RemoteSubnet[];
  /** Addresses of the host per family, canonical. */
  readonly addresses: Readonly<Record<IPFamily, readonly string[]>>;
  /** MAC addresses of the host's links by their addresses, lower case with `-`. */
  readonly macs: Readonly<Record<string, string>>;
  /** HNS knows direct server return. */
  readonly hasDSR: boolean;
}
