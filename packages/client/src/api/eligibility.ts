import type { Node, NodeSettings } from "@turnout/core";

/** Whether load balancers should send this node traffic, as far as its Node object says. */
export interface Eligibility {
  readonly isEligible: boolean;
  /** Why not, for logs; "" when eligible. */
  readonly reason: string;
  /** There will be a Node object, and it does not say yet what rules need: see {@link isNodeKnown}. Default false. */
  readonly isAwaited?: boolean;
}

/**
 * Judge a Node object the way /healthz does.
 *
 * Edges: unknown, being deleted and marked by the cluster autoscaler are not eligible.
 * @source KEP-3836; rule R-60
 */
export function eligibilityOf(node: Node | undefined): Eligibility {
  if (node === undefined) return { isEligible: false, reason: "this node's Node object is unknown" };
  if (node.isDeleting) return { isEligible: false, reason: "the node is being deleted" };
  if (node.isLeaving) return { isEligible: false, reason: "the cluster autoscaler is removing the node" };
  return { isEligible: true, reason: "" };
}

/**
 * Tell whether a Node object says what rules need: addresses, and pod CIDRs in mode NodeCIDR.
 * @source rule R-54
 */
export function isNodeKnown(node: Node | undefined, { detectLocal }: NodeSettings): boolean {
  return node !== undefined && node.addresses.length > 0 && (detectLocal.mode !== "NodeCIDR" || node.podCIDRs.length > 0);
}
