import type { DestinationKind } from "../model/rows.ts";

/** A row that wants a place. */
export interface Contender {
  readonly key: string;
  readonly kind: DestinationKind;
  readonly createdMs: number;
  readonly namespace: string;
  readonly isUsable: boolean;
}

/** Which kind goes first. Everybody who may write a Service may name external IPs; cluster IPs and node ports are handed out by the API server. */
const RANK: Readonly<Record<DestinationKind, number>> = { clusterIP: 0, nodePort: 1, loadBalancerIP: 2, externalIP: 3 };

/**
 * Find who has a place. The contenders are in order of precedence; `isRefused` ones get nothing. Only an external or load-balancer IP passes on for
 * lack of endpoints, and never to another namespace.
 */
export function holderOf(contenders: readonly Contender[], isRefused: (one: Contender) => boolean = () => false): Contender | undefined {
  const first = contenders.find((one) => !isRefused(one));
  if (first === undefined || first.isUsable || !isOutside(first)) return first;
  return contenders.find((other) => other.isUsable && isOneLine(first, other) && !isRefused(other)) ?? first;
}

/** Tell whether an address may pass from one to the other with their endpoints. */
export function isOneLine(a: Contender, b: Contender): boolean {
  return isOutside(a) && a.kind === b.kind && a.namespace === b.namespace;
}

/** Add the rows that hold an address now and before; all others go without either way. */
export function addMoved(before: Contender | undefined, after: Contender | undefined, affected: Set<string>): void {
  if (before?.key === after?.key) return;
  for (const one of [after, before]) if (one !== undefined) affected.add(one.key);
}

/** Tell whether the first has precedence, whatever their endpoints. */
export function goesBefore(a: Contender, b: Contender): boolean {
  if (a.kind !== b.kind) return RANK[a.kind] < RANK[b.kind];
  return a.createdMs === b.createdMs ? a.key < b.key : a.createdMs < b.createdMs;
}

/** Tell whether it is an address from outside the cluster. */
export function isOutside({ kind }: { readonly kind: DestinationKind }): boolean {
  return kind === "externalIP" || kind === "loadBalancerIP";
}
