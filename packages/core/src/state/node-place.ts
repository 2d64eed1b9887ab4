import { parseCIDR, parseIP } from "../model/addresses.ts";
import type { CIDR, IP } from "../model/addresses.ts";
import { isEqual } from "../model/equal.ts";
import type { NodeContext } from "../model/rows.ts";

/** A node as far as rows hang on it. */
export interface NodeFacts {
  readonly context: NodeContext;
  /** Its primary address, parsed. */
  readonly address: IP | undefined;
  /** Of its pods. */
  readonly podRanges: readonly CIDR[];
  /** What its settings do to rules; nodes with equal text have equal rules. */
  readonly rules: string;
}

/** See a node as rows see it. */
export function nodeFactsOf(context: NodeContext): NodeFacts {
  const { addresses, detector, podCIDRs, settings } = context;
  const address = addresses[0] === undefined ? undefined : parseIP(addresses[0]);
  const podRanges = podCIDRs.flatMap((text) => parseCIDR(text) ?? []);
  return { context, address, podRanges, rules: `${detector === undefined ? "all" : "pods"}${settings.masqueradeAll ? "+masquerade" : ""}` };
}

/** Tell whether the same node at two times has the same rows of everything. */
export function isSameNode(a: NodeFacts, b: NodeFacts): boolean {
  if (!isEqual(a.context.podCIDRs, b.context.podCIDRs)) return false;
  return a.rules === b.rules && a.context.zone === b.context.zone && a.context.addresses[0] === b.context.addresses[0];
}
