import type { FaultSwitches } from "@turnout/conformance";
import { ProxyError } from "@turnout/core/backend";
import type { Exec } from "@turnout/core/backend";
import type { FakeNetlink } from "@turnout/host/testing";
import { createNftExec } from "@turnout/host/testing/nft";
import type { NftResult } from "@turnout/host/testing/nft";
import { NFT_TABLE } from "../nft-table.ts";

/** A chain of the family `inet`, and its rules as they were written, each with its comment. */
interface InetChain {
  readonly type: string;
  readonly hook: string;
  readonly priority: number;
  readonly policy: string;
  readonly rules: readonly (readonly [rule: string, comment: string])[];
}

type InetTable = ReadonlyMap<string, InetChain>;

const TABLE = `inet ${NFT_TABLE}`;
const EXTERNAL_TABLE = "inet somebody";
const OWN_PID = 4_242;
const EXTERNAL_PID = 6_666;

/** The rules that are known; nft would understand many more. */
const RULES = { refuse: /^meta mark (0x[0-9a-f]{1,8}) reject with icmpx port-unreachable$/, watch: /^ct status dnat counter$/ } as const;

/** What nft says no to. */
class Complaint extends Error {}

/**
 * As much of nft and of the kernel behind it as this backend uses: tables of the family `inet`, base chains, and two kinds of rules. Anything else is a
 * syntax error.
 */
export class NftInMemory {
  readonly exec: Exec;
  readonly #faults: FaultSwitches;
  readonly #netlink: Pick<FakeNetlink, "commitNft" | "serveNft">;
  #tables: ReadonlyMap<string, InetTable> = new Map();
  #written = 0;

  constructor(faults: FaultSwitches, netlink: Pick<FakeNetlink, "commitNft" | "serveNft">) {
    this.#faults = faults;
    this.#netlink = netlink;
    this.exec = createNftExec((text) => this.#runOwn(text));
    netlink.serveNft({ read: () => undefined, write: () => false, remove: (family, table) => this.#remove(`${family} ${table}`) });
    this.run(`add table ${EXTERNAL_TABLE}\nadd chain ${EXTERNAL_TABLE} guard { type filter hook input priority 0; policy accept; }\n`);
  }

  /** How many statements the backend has carried out. */
  get written(): number {
    return this.#written;
  }

  /** Whether a packet with this mark is refused before anybody routes it. */
  isRefused(mark: number): boolean {
    return this.#chains().some(
      ({ hook, rules }) => hook === "prerouting" && rules.some(([rule]) => Number(RULES.refuse.exec(rule)?.[1] ?? -1) === mark),
    );
  }

  /** Whether the kernel rewrites packets by what conntrack knows: some chain is for NAT, and some rule asks conntrack. */
  get rewrites(): boolean {
    const all = this.#chains();
    return all.some(({ type }) => type === "nat") && all.some(({ rules }) => rules.some(([rule]) => rule.startsWith("ct ")));
  }

  /** The backend's table, or all others, in lines. */
  lines(isOwn: boolean): readonly string[] {
    return [...this.#tables]
      .filter(([name]) => (name === TABLE) === isOwn)
      .flatMap(([name, chains]) => [
        `nft table ${name}`,
        ...[...chains].flatMap(([chain, { type, hook, priority, policy, rules }]) => [
          `nft chain ${name} ${chain}: ${type} ${hook} ${priority} ${policy}`,
          ...rules.map(([rule, comment], index) => `nft rule ${name} ${chain} ${index}: ${rule} "${comment}"`),
        ]),
      ]);
  }

  /** Somebody else runs nft. */
  run(text: string): NftResult {
    return this.#commit(text, EXTERNAL_PID);
  }

  #runOwn(text: string): NftResult | "killed" {
    const isChange = /^\s*(?:add|delete) /.test(text);
    const when = isChange ? this.#faults.next(text) : undefined;
    if (when === "before") return refusal("Could not process rule: Cannot allocate memory");
    if (when === "during") return "killed";
    const answer = this.#commit(text, OWN_PID);
    if (isChange && answer.isDone) this.#written += statementsOf(text).length;
    return when === "after" ? "killed" : answer;
  }

  /** What netlink is told. @throws {ProxyError} */
  #remove(table: string): void {
    if (!this.#tables.has(table)) throw new ProxyError("not_found", "there is no such table", { object: table });
    const answer = this.#runOwn(`delete table ${table}`);
    if (answer === "killed" || !answer.isDone) throw new ProxyError("tool_failed", "a table can't be removed", { object: table });
  }

  /** All or nothing. */
  #commit(text: string, pid: number): NftResult {
    const before = this.#tables;
    const listed = /^list table (\S+ \S+)\s*$/.exec(text)?.[1];
    if (listed !== undefined) return this.#list(listed);
    const changed = new Set<string>();
    try {
      for (const statement of statementsOf(text)) changed.add(this.#carryOut(statement));
    } catch (error) {
      if (!(error instanceof Complaint)) throw error;
      this.#tables = before;
      return refusal(error.message, text);
    }
    const tables = [...changed];
    if (tables.length > 0) this.#netlink.commitNft({ pid, process: "nft", tables });
    return { isDone: true, stdout: "", stderr: "", changed: tables };
  }

  /** Gives the table that changes. */
  #carryOut(statement: string): string {
    const [, verb = "", kind = "", family = "", name = "", rest = ""] =
      /^(add|delete) (table|chain|rule) (inet) (\S+) ?(.*)$/.exec(statement) ?? [];
    const table = `${family} ${name}`;
    const chains = this.#tables.get(table);
    if (verb === "" || (verb === "delete" && kind !== "table")) throw new Complaint("syntax error, unexpected string");
    if (kind === "table" && verb === "add") this.#set(table, chains ?? new Map());
    else if (chains === undefined) throw new Complaint("Could not process rule: No such file or directory");
    else if (kind === "table") this.#tables = new Map([...this.#tables].filter(([one]) => one !== table));
    else this.#set(table, kind === "chain" ? withChain(chains, rest) : withRule(chains, rest));
    return table;
  }

  #set(table: string, chains: InetTable): void {
    this.#tables = new Map([...this.#tables, [table, chains]]);
  }

  #chains(): readonly InetChain[] {
    return [...this.#tables.values()].flatMap((chains) => [...chains.values()]);
  }

  #list(name: string): NftResult {
    const chains = this.#tables.get(name);
    if (chains === undefined) return refusal("No such file or directory", `list table ${name}`);
    const [family, table] = name.split(" ");
    const entries = [
      { table: { family, name: table, handle: 1 } },
      ...[...chains].flatMap(([chain, { type, hook, priority, policy, rules }], index) => [
        { chain: { family, table, name: chain, handle: index + 2, type, hook, prio: priority, policy } },
        ...rules.map(([, comment]) => ({ rule: { family, table, chain, handle: index + 2, comment } })),
      ]),
    ];
    return { isDone: true, stdout: `${JSON.stringify({ nftables: entries })}\n`, stderr: "", changed: [] };
  }
}

/** Parts at line ends and semicolons, but for those in braces and quotes. */
function statementsOf(text: string): readonly string[] {
  return (text.match(/(?:\{[^}]*\}|"[^"]*"|[^;\n"{])+/g) ?? []).map((part) => part.trim()).filter((part) => part !== "");
}

function withChain(chains: InetTable, text: string): InetTable {
  const [, name, type, hook, priority, policy] =
    /^(\S+) \{ type (filter|nat) hook (\S+) priority (-?\d+); policy (accept|drop); \}$/.exec(text) ?? [];
  if (name === undefined || type === undefined || hook === undefined || policy === undefined)
    throw new Complaint("syntax error, unexpected string");
  return new Map([...chains, [name, { type, hook, priority: Number(priority), policy, rules: chains.get(name)?.rules ?? [] }]]);
}

function withRule(chains: InetTable, text: string): InetTable {
  const [, name = "", rule = "", comment = ""] = /^(\S+) (.*?)(?: comment "([^"]*)")?$/.exec(text) ?? [];
  const chain = chains.get(name);
  if (chain === undefined) throw new Complaint("Could not process rule: No such file or directory");
  if (!Object.values(RULES).some((known) => known.test(rule))) throw new Complaint("syntax error, unexpected string");
  return new Map([...chains, [name, { ...chain, rules: [...chain.rules, [rule, comment]] }]]);
}

/** As nft says no, with the place below. */
function refusal(complaint: string, text = ""): NftResult {
  return { isDone: false, stdout: "", stderr: `Error: ${complaint}\n${text.trim()}\n^^^^\n`, changed: [] };
}
