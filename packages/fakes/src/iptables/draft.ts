import type { Arguments } from "./parse-arguments.ts";
import { Refusal, usage, WORDS } from "./refusal.ts";
import { hookOf } from "@turnout/host/iptables";
import type { IptablesRule, IptablesVariant } from "@turnout/host/iptables";
import { builtinChain, newTable, referencesTo, ZERO } from "./tables.ts";
import { BUILTINS } from "./table-names.ts";
import type { Chain, Chains, Counters, Rule } from "./tables.ts";
import type { Hook, TableName } from "./table-names.ts";

/** Depth of jumps that nf_tables allows. @source Linux NFT_JUMP_STACK_SIZE */
const NFT_DEPTH_MAX = 16;

/** Something the kernel refuses, and the line that asked for it. */
interface Fault {
  readonly line: number;
  readonly text: string;
}

/** A table while it is changed: handed over at COMMIT, or thrown away. */
export class Draft {
  readonly table: TableName;
  readonly variant: IptablesVariant;
  readonly #chains: Map<string, Chain>;
  readonly #faults: Fault[] = [];
  /** Rules the kernel won't take, though the tool believes in them. */
  readonly #refused = new Map<Rule, Fault>();
  /** Whether the kernel walks through all chains after each rule, as it does to tell which one is wrong. */
  readonly #isWalked: boolean;

  constructor(table: TableName, variant: IptablesVariant, chains: Chains | undefined, isWalked: boolean = false) {
    this.table = table;
    this.variant = variant;
    this.#chains = new Map(chains ?? newTable(table));
    this.#isWalked = isWalked;
  }

  /** What the kernel will have against it, as nft's tool prints it. Legacy hears of it when the whole table is handed over. */
  get faults(): readonly string[] {
    const all = [...this.#faults, ...this.#refused.values()].sort((a, b) => a.line - b.line);
    return all.map(({ line, text }) => `line ${line}: ${text}`);
  }

  get chains(): Chains {
    return this.#chains;
  }

  /** Remove everything, as restore does that wasn't told `--noflush`. */
  clear(): void {
    this.#chains.clear();
    for (const [name, chain] of newTable(this.table)) this.#chains.set(name, chain);
  }

  /** Make a chain, or empty it where it is there: what a chain's line of restore does. */
  declare(name: string): void {
    this.#chains.set(name, { name, policy: undefined, counters: ZERO, rules: [] });
  }

  isBuiltin(name: string): boolean {
    return BUILTINS[this.table].includes(name as Hook);
  }

  /** @throws {Refusal} for a policy there isn't, or a chain that can't have one. */
  setPolicy(name: string, policy: string, counters: Counters | undefined): void {
    const chain = this.#chains.get(name);
    const isPolicy = policy === "ACCEPT" || policy === "DROP";
    // nft's tool looks at the policy first.
    if (chain?.policy === undefined && (isPolicy || this.variant === "legacy")) throw new Refusal("command", WORDS.badBuiltin);
    if (chain === undefined || !isPolicy) throw new Refusal("command", WORDS.badPolicy);
    this.#chains.set(name, { ...chain, ...hookOf(this.table, name, policy), policy, counters: counters ?? chain.counters });
  }

  /** Do what a command line asks; `line` is its number. @throws {Refusal}. */
  run(args: Arguments, line: number): void {
    switch (args.verb) {
      case "A":
      case "I":
      case "R":
        return this.#put(args, line);
      case "C":
      case "D":
        return this.#find(args);
      case "N":
        if (this.#chains.has(args.chain ?? "")) throw new Refusal("command", WORDS.chainExists);
        return this.declare(args.chain ?? "");
      case "F":
        return this.#flush(args.chain);
      case "X":
        return this.#delete(args.chain, line);
      case "P":
        return this.setPolicy(args.chain ?? "", args.policy ?? "", ZERO);
      case "Z":
      case "L":
      case "S":
      case "V":
        break;
    }
  }

  /** What the kernel says when the whole table is handed over; undefined: it takes it. */
  verdict(): string | undefined {
    for (const { rules } of this.#chains.values())
      for (const rule of rules) {
        const word = this.#faultOf(rule);
        if (word !== undefined) return word;
      }
    return this.#walk();
  }

  #put({ verb, chain: name = "", number, rules: given, counters }: Arguments, line: number): void {
    const rules = given.map((rule): Rule => ({ ...rule, deletion: "", counters }));
    for (const rule of rules) this.#checkJump(rule);
    const chain = this.#chains.get(name);
    if (chain === undefined) throw new Refusal("command", WORDS.noChain);
    if (this.variant === "legacy" && rules.some((rule) => rule.chain !== undefined && this.isBuiltin(rule.chain)))
      throw new Refusal("command", WORDS.invalid);
    const size = chain.rules.length;
    const at = verb === "A" ? size : (number ?? 1) - 1;
    if (verb === "I" && at > size) throw new Refusal("command", "Index of insertion too big");
    if (verb === "R" && at >= size) throw new Refusal("command", "Index of replacement too big");
    // Each of several rules of one line goes in at the same place.
    const inOrder = verb === "I" ? rules.toReversed() : rules;
    this.#chains.set(name, { ...chain, rules: chain.rules.toSpliced(at, verb === "R" ? 1 : 0, ...inOrder) });
    const isAtEnd = verb === "I" && at > 0 && at === size;
    const operation = verb === "R" ? "RULE_REPLACE" : verb === "A" || isAtEnd ? "RULE_APPEND" : "RULE_INSERT";
    for (const rule of rules) {
      const word = this.#faultOf(rule) ?? this.#placeFaultOf(rule, name) ?? (this.#isWalked ? this.#walk() : undefined);
      if (word !== undefined) this.#refused.set(rule, { line, text: `${operation} failed (${word}): rule in chain ${name}` });
    }
  }

  #find({ verb, chain: name = "", number, rules }: Arguments): void {
    for (const rule of rules) if (number === undefined) this.#checkJump(rule);
    const chain = this.#chains.get(name);
    if (verb === "D" && number !== undefined) {
      if (chain === undefined) throw new Refusal("command", WORDS.noChain);
      if (number > chain.rules.length) throw new Refusal("command", "Index of deletion too big");
      this.#remove(chain, number - 1);
      return;
    }
    for (const { text } of rules) {
      const now = this.#chains.get(name);
      const at = now?.rules.findIndex((rule) => rule.text === text) ?? -1;
      if (now === undefined || at < 0) throw new Refusal("command", WORDS.noRule);
      if (verb === "D") this.#remove(now, at);
    }
  }

  #remove(chain: Chain, at: number): void {
    this.#forget(chain.rules.slice(at, at + 1));
    this.#chains.set(chain.name, { ...chain, rules: chain.rules.toSpliced(at, 1) });
  }

  #checkJump({ chain, isGoto }: IptablesRule): void {
    if (chain === undefined || this.#chains.has(chain)) return;
    if (this.variant === "nft") throw usage(`Chain '${chain}' does not exist`);
    throw usage(isGoto ? `goto '${chain}' is not a chain` : `Couldn't load target \`${chain}':No such file or directory\n`);
  }

  #flush(name: string | undefined): void {
    for (const chain of this.#named(name)) {
      this.#forget(chain.rules);
      this.#chains.set(chain.name, { ...chain, rules: [] });
    }
  }

  #delete(name: string | undefined, line: number): void {
    const chains = this.#named(name).filter(({ policy }) => name !== undefined || policy === undefined);
    for (const chain of chains) {
      if (this.variant === "legacy") {
        if (chain.policy !== undefined) throw new Refusal("command", WORDS.invalid);
        if (referencesTo(this.#chains, chain.name) > 0) throw new Refusal("command", WORDS.tooManyLinks);
        if (chain.rules.length > 0) throw new Refusal("command", WORDS.notEmpty);
      } else if (this.#isInUse(chain)) this.#faults.push({ line, text: `CHAIN_DEL failed (${WORDS.busy}): chain ${chain.name}` });
      // nft's tool knows nothing of an empty built-in chain, and makes it anew when it is needed.
      if (chain.policy === undefined) this.#chains.delete(chain.name);
      else this.#chains.set(chain.name, builtinChain(this.table, chain.name));
    }
  }

  #isInUse({ name, rules }: Chain): boolean {
    const isThere = (rule: Rule): boolean => !this.#refused.has(rule);
    return (
      rules.some(isThere) || [...this.#chains.values()].some((other) => other.rules.some((rule) => rule.chain === name && isThere(rule)))
    );
  }

  #named(name: string | undefined): readonly Chain[] {
    if (name === undefined) return [...this.#chains.values()];
    const chain = this.#chains.get(name);
    if (chain === undefined) throw new Refusal("command", WORDS.noChain);
    return [chain];
  }

  /** A rule that goes before it was handed over was never there. */
  #forget(rules: readonly Rule[]): void {
    for (const rule of rules) this.#refused.delete(rule);
  }

  /** What the kernel has against a rule by itself. */
  #faultOf({ matches, target, protocol, chain, source, destination }: IptablesRule): string | undefined {
    // nft's tool makes expressions of its own of these two, which ask for no protocol.
    const isFree = (wanted: string): boolean => this.variant === "nft" && (wanted === "tcp" || wanted === "udp");
    const has = (wanted: string | undefined, isOfMatch: boolean): boolean =>
      wanted === undefined || (isOfMatch && isFree(wanted)) || (protocol?.value === wanted && !protocol.isInverted);
    if (chain !== undefined && this.isBuiltin(chain)) return WORDS.missing;
    if (matches.some(({ isMissing }) => isMissing === true)) return WORDS.missing;
    if (!matches.every((match) => has(match.protocol, true)) || !has(target?.protocol, false)) return WORDS.invalid;
    if (target?.tables !== undefined && !target.tables.includes(this.table)) return WORDS.invalid;
    const isNothing = [source, destination].some((wanted) => wanted?.isInverted === true && wanted.value.prefixLength === 0);
    return isNothing && this.variant === "nft" ? WORDS.invalid : undefined;
  }

  /** What the kernel has against a rule in a built-in chain, where it knows the hook at once. */
  #placeFaultOf({ target }: IptablesRule, name: string): string | undefined {
    return this.isBuiltin(name) && target?.hooks?.includes(name) === false ? WORDS.invalid : undefined;
  }

  /** Walk all ways from the built-in chains, as the kernel does to find loops and targets out of place. */
  #walk(): string | undefined {
    for (const hook of BUILTINS[this.table]) {
      const known = new Map<string, number | "under way">();
      const depth = this.#depth(hook, known);
      const isOutOfPlace = (name: string): boolean => this.#walked(name).some(({ target }) => target?.hooks?.includes(hook) === false);
      if ([...known.keys()].some(isOutOfPlace)) return WORDS.invalid;
      const isTooDeep = this.variant === "nft" ? depth >= NFT_DEPTH_MAX : depth === Number.POSITIVE_INFINITY;
      if (isTooDeep) return this.variant === "nft" ? WORDS.tooManyLinks : WORDS.loop;
    }
    return undefined;
  }

  /** Rules of a chain that the kernel looks at: legacy knows that none comes behind one that always decides. */
  #walked(name: string): readonly Rule[] {
    const rules = this.#chains.get(name)?.rules ?? [];
    const end = this.variant === "nft" ? -1 : rules.findIndex(({ text }) => /^-j (?:ACCEPT|DROP|RETURN)$/.test(text));
    return end < 0 ? rules : rules.slice(0, end + 1);
  }

  /** Jumps in a row from a chain; infinite in a loop. */
  #depth(name: string, known: Map<string, number | "under way">): number {
    const found = known.get(name);
    if (found !== undefined) return found === "under way" ? Number.POSITIVE_INFINITY : found;
    known.set(name, "under way");
    let depth = 0;
    for (const rule of this.#walked(name)) if (rule.chain !== undefined) depth = Math.max(depth, 1 + this.#depth(rule.chain, known));
    known.set(name, depth);
    return depth;
  }
}
