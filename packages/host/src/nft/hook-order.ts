/** A base chain, as far as it decides when the kernel calls it. */
export interface Called {
  /** E.g. `filter`, `nat`. */
  readonly type: string;
  readonly priority: number;
}

/** Where the kernel translates destinations (prerouting, output) and sources (postrouting, input). @source linux/netfilter_ipv4.h NF_IP_PRI_NAT_DST, NF_IP_PRI_NAT_SRC */
export const DSTNAT = -100;
/** See {@link DSTNAT}. */
export const SRCNAT = 100;

/**
 * Say at which priority of a hook the kernel calls a chain. Pure.
 *
 * Shape: all nat chains of a hook, of every table and of both variants of iptables, run inside the one hook of the kernel's own NAT. Their priorities
 * order them only among themselves. They run for the first packet of a connection, until one of them translates.
 * @source linux net/netfilter/nf_nat_core.c nf_nat_register_fn, nf_nat_inet_fn
 */
export function calledAt(hook: string, { type, priority }: Called): number {
  if (type !== "nat") return priority;
  return hook === "prerouting" || hook === "output" ? DSTNAT : SRCNAT;
}

/** Order base chains of one hook as packets meet them; those at one priority are equal: the kernel calls the one first that was made last. Pure. */
export function inOrder(hook: string): (one: Called, other: Called) => number {
  return (one, other) => calledAt(hook, one) - calledAt(hook, other) || one.priority - other.priority;
}
