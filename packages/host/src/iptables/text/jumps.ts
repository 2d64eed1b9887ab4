import type { JumpsObject, RuleLocation, TableName } from "./objects.ts";

/** A jump from a chain of the kernel's into one of a proxy's. */
export interface Jump {
  readonly table: TableName;
  readonly from: string;
  readonly to: string;
  /** The rule, without its chain. */
  readonly text: string;
}

/** Each chain of the kernel's with its jumps, of which the one that is put at the head last comes first. */
export function jumpObjects(jumps: readonly Jump[]): readonly JumpsObject[] {
  const byChain = Map.groupBy(jumps, ({ table, from }) => `${table} ${from}`);
  return Array.from(byChain, ([key, own]) => ({
    kind: "jumps",
    key,
    value: own
      .map(({ text }) => text)
      .toReversed()
      .join("\n"),
  }));
}

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
