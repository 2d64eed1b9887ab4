import type { Node } from "../model/api-objects.ts";
import type { NodeContext } from "../model/rows.ts";

/**
 * Say what a node is taken to be: as it is, and where it says nothing, as it was last.
 *
 * Edges: a node that is gone is what it was; one that says no address at all (or no pod CIDR) keeps those it had. One that says addresses of
 * one family alone has none of the other. A Node object that was deleted, or lost its addresses, is no reason for rules to change: the
 * machine is there, or nobody would ask.
 * @source kube-proxy 1.36 logs both and goes on with what it began with
 */
export function lastingNode(before: Node | undefined, now: Node | undefined): Node | undefined {
  if (now === undefined || before === undefined) return now ?? before;
  const addresses = filled(before.addresses, now.addresses);
  const podCIDRs = filled(before.podCIDRs, now.podCIDRs);
  return addresses === now.addresses && podCIDRs === now.podCIDRs ? now : { ...now, addresses, podCIDRs };
}

/**
 * The same of what another process says of the node, in one family: one that was started anew may not know it yet.
 *
 * Edges: a Node object that is not known can't be told from one that says nothing. So one without an address of the family has the zone it had, too,
 * unless it says another. What detects local pods by pod CIDRs goes with those.
 */
export function lastingContext(before: NodeContext | undefined, now: NodeContext): NodeContext {
  if (before === undefined) return now;
  const addresses = filled(before.addresses, now.addresses);
  const podCIDRs = filled(before.podCIDRs, now.podCIDRs);
  const [arePodsLasting, isUnknown] = [podCIDRs !== now.podCIDRs, addresses !== now.addresses];
  if (!arePodsLasting && !isUnknown) return now;
  const zone = isUnknown && now.zone === "" ? before.zone : now.zone;
  return { ...now, addresses, podCIDRs, zone, detector: now.detector ?? (arePodsLasting ? before.detector : undefined) };
}

function filled(before: readonly string[], now: readonly string[]): readonly string[] {
  return now.length === 0 && before.length > 0 ? before : now;
}
