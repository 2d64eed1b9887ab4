import { kernelRefusal } from "./refusal.ts";
import type { BaseHook, Chain, Table } from "./ruleset.ts";

/** How many jumps and gotos deep a packet may go from its base chain. @source NFT_JUMP_STACK_SIZE of the kernel. */
const JUMPS_MAX = 16;

/** Base chains from which packets may come to a statement; a type other than NAT has no translations. */
const HOOKS: Readonly<Record<string, readonly string[]>> = {
  dnat: ["prerouting", "output"],
  redirect: ["prerouting", "output"],
  snat: ["postrouting", "input"],
  masquerade: ["postrouting"],
  reject: ["prerouting", "input", "forward", "output"],
};

/**
 * Look at all ways packets can take through a table, as the kernel does before it commits.
 * @throws {Refusal} when one is a loop or too deep, or leads a packet to a statement that its hook doesn't allow.
 */
export function validateTable({ chains }: Table): void {
  for (const chain of chains.values()) if (chain.hook !== undefined) depthOf(chain, chain.hook, new Map());
}

/** How deep a chain leads; chains are looked at once for each base chain. */
function depthOf(chain: Chain, base: BaseHook, depths: Map<Chain, number>): number {
  const known = depths.get(chain);
  // Found again on the way down: a loop.
  if (known !== undefined && known < 0) throw kernelRefusal("EMLINK");
  if (known !== undefined) return known;
  depths.set(chain, -1);
  let depth = 0;
  for (const { expr, chains, sets } of chain.rules) {
    for (const word of expr.flatMap((statement) => Object.keys(statement))) {
      const hooks = HOOKS[word];
      if (hooks === undefined) continue;
      if (!hooks.includes(base.at) || (word !== "reject" && base.type !== "nat")) throw kernelRefusal("EOPNOTSUPP");
    }
    for (const next of [...chains, ...sets.flatMap(({ targets }) => [...targets.keys()])])
      depth = Math.max(depth, 1 + depthOf(next, base, depths));
  }
  if (depth >= JUMPS_MAX) throw kernelRefusal("EMLINK");
  depths.set(chain, depth);
  return depth;
}
