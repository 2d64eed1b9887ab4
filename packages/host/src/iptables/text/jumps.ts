import type { RuleLocation } from "./objects.ts";

/**
 * Write the commands that delete the jumps of others to chains, from what `iptables-save` printed of each table. Pure.
 *
 * Shape: `program` is the one to run, e.g. `iptables-nft`. Jumps between the chains themselves don't count.
 */
export function jumpDeletions(
  saved: Readonly<Partial<Record<string, string>>>,
  chains: readonly Pick<RuleLocation, "table" | "chain">[],
  program: string,
): readonly string[] {
  const names = (table: string): ReadonlySet<string> => new Set(chains.filter((one) => one.table === table).map(({ chain }) => chain));
  return Object.entries(saved).flatMap(([table, text = ""]) => {
    const left = names(table);
    return [...text.matchAll(/^(?:\[\d+:\d+\] )?-A (\S+) (.*)$/gm)].flatMap(([, from = "", rule = ""]) => {
      const target = jumpOf(rule) ?? "";
      return left.has(target) && !left.has(from) ? [`${program} -t ${table} -D ${from} ${rule}`] : [];
    });
  });
}

/** Name the chain or target that a rule goes to. Pure. */
export function jumpOf(rule: string): string | undefined {
  return /(?:^| )-[jg] (\S+)/.exec(rule.replaceAll(/(?:--comment )?"(?:[^"\\]|\\.)*"|--comment \S+/g, ""))?.[1];
}
