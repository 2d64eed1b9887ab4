import type { Exec } from "@turnout/core";
import { IPTABLES_TABLES } from "@turnout/host";
import type { NftChain, NftHook } from "@turnout/host";
import { readingListing, textsByHandle } from "@turnout/host/nft";

/** Chains of others that are listed with their rules, at most. */
const CHAINS_MAX = 200;
/** A table with more chains than these is not listed as a whole. */
const TABLE_MAX = 500;
/** Rules of one chain that are kept, at most. */
const RULES_MAX = 500;

/** A rule as `nft -j` prints it. */
export interface NftRule {
  readonly handle: number;
  readonly comment?: string;
  /** As nft prints it for people. */
  readonly text?: string;
  /** The statements, from left to right; `null` stands for what this nft can't print. */
  readonly expr: readonly unknown[];
}

/** A chain of somebody else's nf_tables rules. */
export interface ExternalChain {
  /** nft's word, e.g. `inet`. */
  readonly family: string;
  readonly table: string;
  readonly name: string;
  /** Undefined: only other chains call it. */
  readonly base?: NftHook;
  readonly rules: readonly NftRule[];
  /** It has more rules than are listed here. */
  readonly isCut: boolean;
}

/** Tell whether a table of nf_tables is one that the nf_tables variant of iptables makes. Pure. */
export function isIptablesTable({ family, table }: Pick<NftChain, "family" | "table">): boolean {
  return (family === "ip" || family === "ip6") && IPTABLES_TABLES.has(table);
}

/**
 * Read what `nft -j list …` printed of one table: rules by chain.
 *
 * Shape: `shown` is what `nft -a list …` printed of the same.
 * @throws {ProxyError} `tool_failed` when it isn't such a listing.
 */
export function readRules(text: string, shown: string = ""): ReadonlyMap<string, readonly NftRule[]> {
  return readingListing(() => {
    const texts = textsByHandle(shown);
    const rules = new Map<string, NftRule[]>();
    const { nftables } = JSON.parse(text) as { readonly nftables: readonly { readonly rule?: ListedRule; readonly chain?: ListedChain }[] };
    for (const { chain, rule } of nftables) {
      if (chain !== undefined) rules.set(`${chain.family} ${chain.table} ${chain.name}`, []);
      if (rule !== undefined) rules.get(`${rule.family} ${rule.table} ${rule.chain}`)?.push(slim(rule, texts.get(String(rule.handle))));
    }
    return rules;
  });
}

interface ListedChain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
}

type ListedRule = NftRule & { readonly family: string; readonly table: string; readonly chain: string };

function slim({ handle, comment, expr }: ListedRule, text: string | undefined): NftRule {
  return { handle, expr, ...(comment === undefined ? {} : { comment }), ...(text === undefined ? {} : { text }) };
}

/** Name the chains that a rule jumps or goes to. Pure. */
export function targetsOf({ expr }: Pick<NftRule, "expr">): readonly string[] {
  const targets = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if ((key === "jump" || key === "goto") && isNamed(inner)) targets.add(inner.target);
      else visit(inner);
    }
  };
  visit(expr);
  return [...targets];
}

function isNamed(value: unknown): value is { readonly target: string } {
  return typeof value === "object" && value !== null && "target" in value && typeof value.target === "string";
}

/** Hears which table nft ended by a signal at, and what is said of that. */
type OnUnread = (table: string, because: string) => void;

/** How the rules of some chains are read; those that can't be are missing. */
type ReadChains = (chains: readonly NftChain[]) => Promise<ReadonlyMap<string, readonly NftRule[]>>;

/**
 * List the base chains of others with their rules, and the chains that those call, breadth first.
 *
 * Shape: base chains in the order in which packets meet them within a family and hook.
 * Edges: what vanishes meanwhile, or what nft can't list, has no rules. Chains of verdict maps in sets are not followed. A table is listed in
 * one go, without the elements of its sets; of one with very many chains, only those that are asked for.
 */
export async function listExternalChains(
  chains: readonly NftChain[],
  exec: Exec,
  signal: AbortSignal,
  onUnread: OnUnread,
): Promise<readonly ExternalChain[]> {
  const known = new Map(chains.map((chain) => [keyOf(chain), chain]));
  const readAll = readerOf(chains, exec, signal, onUnread);
  const seen = new Map<string, ExternalChain>();
  let next: readonly NftChain[] = chains.filter(({ base }) => base !== undefined).toSorted(inOrder);
  while (next.length > 0 && seen.size < CHAINS_MAX) {
    const some = next.slice(0, CHAINS_MAX - seen.size);
    const listed = await readAll(some);
    const wanted = new Map<string, NftChain>();
    for (const { family, table, name, base } of some) {
      const rules = listed.get(keyOf({ family, table, name })) ?? [];
      const kept = rules.slice(0, RULES_MAX);
      const isCut = kept.length < rules.length;
      seen.set(keyOf({ family, table, name }), { family, table, name, ...(base === undefined ? {} : { base }), rules: kept, isCut });
      for (const target of kept.flatMap(targetsOf)) {
        const chain = known.get(keyOf({ family, table, name: target }));
        if (chain !== undefined) wanted.set(keyOf(chain), chain);
      }
    }
    next = [...wanted.values()].filter((chain) => !seen.has(keyOf(chain)));
  }
  return [...seen.values()];
}

/** nft lists one thing in one run: of several commands it answers the last one alone (1.0.6). */
function readerOf(chains: readonly NftChain[], exec: Exec, signal: AbortSignal, onUnread: OnUnread): ReadChains {
  const sizes = new Map<string, number>();
  for (const chain of chains) sizes.set(tableOf(chain), (sizes.get(tableOf(chain)) ?? 0) + 1);
  const tables = new Map<string, ReadonlyMap<string, readonly NftRule[]>>();
  const list = async (what: readonly string[]): Promise<ReadonlyMap<string, readonly NftRule[]>> => {
    const run = (format: string): ReturnType<Exec["run"]> =>
      exec.run("nft", [format, "-t", "list", ...what], { signal, timeoutMs: 20_000 });
    const [{ code, stdout, stderr, signal: by }, shown] = await Promise.all([run("-j"), run("-a")]);
    if (by !== undefined) onUnread(what.slice(1, 3).join(" "), stderr.trim());
    return code === 0 ? readRules(stdout, shown.stdout) : new Map();
  };
  return async (some) => {
    const rules = new Map<string, readonly NftRule[]>();
    for (const chain of some) {
      const { family, table, name } = chain;
      const isSmall = (sizes.get(tableOf(chain)) ?? 0) <= TABLE_MAX;
      if (isSmall && !tables.has(tableOf(chain))) tables.set(tableOf(chain), await list(["table", family, table]));
      const listed = isSmall ? tables.get(tableOf(chain)) : await list(["chain", family, table, name]);
      rules.set(keyOf(chain), listed?.get(keyOf(chain)) ?? []);
    }
    return rules;
  };
}

function tableOf({ family, table }: Pick<NftChain, "family" | "table">): string {
  return `${family} ${table}`;
}

function keyOf({ family, table, name }: Pick<NftChain, "family" | "table" | "name">): string {
  return `${family} ${table} ${name}`;
}

function inOrder(a: NftChain, b: NftChain): number {
  const [one, other] = [a.base, b.base];
  if (one === undefined || other === undefined) return 0;
  return compare(a.family, b.family) || compare(one.hook, other.hook) || one.priority - other.priority;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
