import type { Plain } from "@turnout/core";

/**
 * What decides about a proxy's rules besides API objects and the node's settings, as JSON has it. A running proxy tells it, so that whoever looks at its
 * rules compares with the same. Absent: nobody said.
 */
export interface RuleSettings {
  /** With those that make it count, where Service metrics are asked for. */
  readonly backendOptions: Readonly<Record<string, Plain>>;
  readonly serviceEntriesMax?: number;
  readonly bindAddress?: string;
  /** CIDRs; empty: none is allowed. */
  readonly allowedExternalIPs?: readonly string[];
  readonly allowedLoadBalancerIPs?: readonly string[];
  readonly strictSourceRanges?: boolean;
  readonly strictExternalIPs?: boolean;
}
