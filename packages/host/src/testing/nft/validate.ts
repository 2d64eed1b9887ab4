import { kernelRefusal } from "./refusal.ts";
import type { Span } from "./refusal.ts";
import type { BaseHook, Chain, Table } from "./ruleset.ts";

/** How many jumps and gotos deep a packet may go from its base chain. @source NFT_JUMP_STACK_SIZE of the kernel. */
const JUMPS_MAX = 16;

/**
 * Look at all ways packets can take through a table, as the kernel does before it commits.
 * @throws {Refusal} when one is a loop or too deep, or leads a packet to a statement that its hook doesn't allow.
 */
export function validateTable({ chains }: Table, span: Span): void {
  for (const chain of chains.values()) {
    if (chain.base !== undefined) depthOf(chain, chain.base, new Map(), span);
  }
}

/** How deep a chain leads; chains are looked at once for each base chain. */
function depthOf(chain: Chain, base: BaseHook, depths: Map<Chain, number>, span: Span): number {
  const known = depths.get(chain);
  if (known !== undefined) {
    // Found again on the way down: a loop.
    if (known < 0) throw kernelRefusal("EMLINK", span);
    return known;
  }
  depths.set(chain, -1);
  let depth = 0;
  for (const { statements, chains, sets } of chain.rules) {
    for (const { demand } of statements) {
      if (demand === undefined) continue;
      if (!demand.hooks.includes(base.hook) || (demand.type !== undefined && demand.type !== base.type))
        throw kernelRefusal("EOPNOTSUPP", span);
    }
    for (const next of chains) depth = Math.max(depth, 1 + depthOf(next, base, depths, span));
    for (const { targets } of sets) for (const next of targets.keys()) depth = Math.max(depth, 1 + depthOf(next, base, depths, span));
  }
  if (depth >= JUMPS_MAX) throw kernelRefusal("EMLINK", span);
  depths.set(chain, depth);
  return depth;
}
