import { ProxyError } from "@turnout/core";
import type { ExecResult, IPFamily, World } from "@turnout/core";
import { listChains } from "./chain-listing.ts";
import { iptablesError } from "./errors.ts";
import { IptablesLookup } from "./lookup.ts";
import type { WantedIptables } from "./lookup.ts";
import { restoreIptables, runLocked } from "./restore.ts";
import type { LockedRun } from "./restore.ts";
import { jumpDeletions } from "./text/jumps.ts";
import { placeOf } from "./text/objects.ts";
import type { TableName } from "./text/objects.ts";
import { iptablesName } from "./tools.ts";
import type { IptablesChoice, IptablesProgram, IptablesVariant } from "./tools.ts";

const TABLES: readonly TableName[] = ["filter", "nat", "mangle"];

/** What waiting for the xtables lock has come to. */
export interface LockWaits {
  /** Calls that had to wait. */
  readonly count: number;
  /** Time they spent with tries that got nothing, in ms. */
  readonly totalMs: number;
}

/**
 * The iptables programs of one family, in the variant this host uses: looked up with the first call, so that rendering needs no tool.
 */
export class IptablesTool {
  readonly #world: Pick<World, "exec" | "clock" | "log">;
  readonly #family: IPFamily;
  readonly #lookup: IptablesLookup;
  readonly #random: () => number;
  #choice: IptablesChoice | undefined;
  #waits: LockWaits = { count: 0, totalMs: 0 };

  /** `wanted` may be a lookup that the other family shares, or a program that was found already; then nothing is looked up. */
  constructor(
    world: Pick<World, "exec" | "clock" | "log">,
    family: IPFamily,
    wanted: WantedIptables | IptablesLookup | IptablesProgram,
    random: () => number = Math.random,
  ) {
    this.#world = world;
    this.#family = family;
    if (wanted instanceof IptablesLookup) this.#lookup = wanted;
    else this.#lookup = new IptablesLookup(world.exec, typeof wanted === "string" ? wanted : wanted.variant);
    if (typeof wanted !== "string" && !(wanted instanceof IptablesLookup))
      this.#choice = { ...wanted, because: "it was asked for", mixed: undefined };
    this.#random = random;
  }

  get waits(): LockWaits {
    return this.#waits;
  }

  /** The variant in use; undefined: nothing was called yet that tells. */
  get variant(): IptablesVariant | undefined {
    const { found, wanted } = this.#lookup;
    return (this.#choice ?? found)?.variant ?? (wanted === "auto" ? undefined : wanted);
  }

  /** Which programs are used. @throws {ProxyError} as {@link IptablesLookup.choice}. */
  async choice(signal: AbortSignal): Promise<IptablesChoice> {
    if (this.#choice !== undefined) return this.#choice;
    const choice = await this.#lookup.choice(signal);
    // Several may have waited; one of them tells.
    if (this.#choice === undefined) this.#notify(choice);
    return (this.#choice = choice);
  }

  #notify({ variant, version, because, mixed }: IptablesChoice): void {
    const { log } = this.#world;
    log.info("iptables chosen", { family: this.#family, variant, version, because });
    if (mixed === undefined) return;
    log.warn("both variants of iptables hold rules on this host, and the kernel obeys both", {
      family: this.#family,
      used: variant,
      other: mixed,
      hint: "have kubelet, CNI and proxies use one variant; remove the rules of the other, or reboot",
    });
  }

  /** Say why chains are left: other programs' rules jump to them. */
  async leftChains(left: readonly { readonly object: { readonly key: string } }[], signal: AbortSignal): Promise<ProxyError> {
    const program = iptablesName(this.#family, await this.choice(signal), "");
    const places = left.map(({ object }) => placeOf(object));
    const jumps = jumpDeletions(await this.saveExisting(signal), places, program);
    return new ProxyError("already_exists", "chains are left because another program's rules jump to them", {
      object: left.map(({ object }) => object.key).join(", "),
      hint: `delete the jumps: ${jumps.join("; ")}`,
    });
  }

  /** List one table. @throws {ProxyError} `host_unsupported` where it holds what the tool can't list. */
  async save(table: TableName, signal: AbortSignal): Promise<string> {
    return await this.#saved(["-t", table], table, signal);
  }

  /**
   * List all tables; "" for one that isn't there.
   *
   * Shape: in one run. Whichever table the nft variant is asked for, it has the kernel walk the chains of all of them, which is most of the time it
   * takes; and to start a program takes a large process some milliseconds.
   * @throws {ProxyError} as {@link IptablesTool.save}.
   */
  async saveAll(signal: AbortSignal): Promise<Readonly<Record<TableName, string>>> {
    const result = await this.#saveWhatIsThere(signal);
    if (!hidesNames(result)) return { filter: "", nat: "", mangle: "", ...tablesIn(result) };
    const [filter, nat, mangle] = await Promise.all([this.save("filter", signal), this.save("nat", signal), this.save("mangle", signal)]);
    return { filter, nat, mangle };
  }

  /** List one table with what its rules matched. @throws {ProxyError} as {@link IptablesTool.save}. */
  async saveCounted(table: TableName, signal: AbortSignal): Promise<string> {
    return await this.#saved(["-c", "-t", table], table, signal);
  }

  /**
   * List some chains, as {@link IptablesTool.save} would; those that aren't there are missing.
   *
   * Edges: where one of them is not there, the legacy variant lists whole tables, and the nft variant chain by chain.
   * @throws {ProxyError} as {@link IptablesTool.save}.
   */
  async saveChains(
    chains: Readonly<Record<TableName, readonly string[]>>,
    signal: AbortSignal,
  ): Promise<Readonly<Record<TableName, string>>> {
    const places = TABLES.flatMap((table) => chains[table].map((chain) => ({ table, chain })));
    const listing = { exec: this.#world.exec, restore: await this.#file("-restore", signal), options: { signal } };
    const listed = await listChains(places, listing);
    const textOf = async (table: TableName): Promise<string> => {
      if (listed === undefined) return await this.#saveSome(table, chains[table], signal);
      return places.map((place, index) => (place.table === table ? declared(listed[index] ?? "") : "")).join("");
    };
    const [filter, nat, mangle] = await Promise.all([textOf("filter"), textOf("nat"), textOf("mangle")]);
    return { filter, nat, mangle };
  }

  async #saveSome(table: TableName, chains: readonly string[], signal: AbortSignal): Promise<string> {
    if (chains.length === 0) return "";
    if ((await this.choice(signal)).variant === "legacy") return await this.save(table, signal);
    const file = await this.#file("", signal);
    const texts = await Promise.all(chains.map((chain) => this.#world.exec.run(file, ["-t", table, "-S", chain], { signal })));
    return texts.map(({ code, stdout, stderr }) => (code === 0 ? declared(stdout) : absent(stderr, table))).join("");
  }

  /** List the tables that exist, each under its name; asking the legacy variant for one by name would make it. */
  async saveExisting(signal: AbortSignal): Promise<Readonly<Partial<Record<TableName, string>>>> {
    return tablesIn(await this.#saveWhatIsThere(signal));
  }

  async #saveWhatIsThere(signal: AbortSignal): Promise<ExecResult> {
    return await this.#world.exec.run(await this.#file("-save", signal), [], { signal, timeoutMs: 600_000 });
  }

  /** Carry out a change. @throws {ProxyError} what the tool complained about. */
  async restore(input: string, signal: AbortSignal): Promise<void> {
    await restoreIptables(await this.#file("-restore", signal), input, this.#run(signal));
  }

  /** Tell whether a chain is there. @throws as {@link IptablesTool.listChain}. */
  async hasChain(table: TableName, chain: string, signal: AbortSignal): Promise<boolean> {
    return (await this.listChain(table, chain, signal)) !== undefined;
  }

  /**
   * List one chain as `iptables -S` prints it; undefined: it isn't there. Cheap however many rules there are elsewhere.
   * @throws {ProxyError} as {@link runLocked}, and `permission_denied`.
   */
  async listChain(table: TableName, chain: string, signal: AbortSignal): Promise<string | undefined> {
    const file = await this.#file("", signal);
    const result = await runLocked(file, ["-t", table, "-S", chain], this.#run(signal));
    if (result.code === 0) return result.stdout;
    const error = iptablesError(result.stderr, `look for chain ${chain}`);
    if (error.code === "permission_denied") throw error;
    return undefined;
  }

  async #saved(args: readonly string[], table: TableName, signal: AbortSignal): Promise<string> {
    const { code, stdout, stderr } = await this.#world.exec.run(await this.#file("-save", signal), args, { signal, timeoutMs: 600_000 });
    if (code !== 0) throw iptablesError(stderr, `list table ${table}`);
    assertListed(stdout);
    return stdout;
  }

  async #file(what: "" | "-restore" | "-save", signal: AbortSignal): Promise<string> {
    return iptablesName(this.#family, await this.choice(signal), what);
  }

  #run(signal: AbortSignal): LockedRun {
    const { exec, clock } = this.#world;
    return { exec, clock, random: this.#random, signal, waited: (ms) => this.#note(ms) };
  }

  #note(ms: number): void {
    this.#waits = { count: this.#waits.count + 1, totalMs: this.#waits.totalMs + ms };
    this.#world.log.debug("waited for the xtables lock", { family: this.#family, ms: Math.round(ms) });
  }
}

/** Tell that the legacy variant may not read which tables there are, which the kernel tells root alone. */
function hidesNames({ code, stderr }: ExecResult): boolean {
  return code !== 0 && stderr.includes("Failed to list table names");
}

/** Take apart what was listed, each table under its name. */
function tablesIn({ code, stdout, stderr }: ExecResult): Readonly<Partial<Record<TableName, string>>> {
  if (code !== 0) throw iptablesError(stderr, "list what is there");
  assertListed(stdout);
  return Object.fromEntries(stdout.split(/^\*/m).map((text) => [text.slice(0, text.indexOf("\n")), text]));
}

/** `-S` declares chains otherwise than `-save`. */
function declared(listed: string): string {
  return listed.replace(/^-N (\S+)$/gm, ":$1 - [0:0]").replace(/^-P (\S+) (\S+)$/gm, ":$1 $2 [0:0]");
}

function absent(stderr: string, table: TableName): string {
  if (/is incompatible/.test(stderr)) return "";
  if (/No chain\/target\/match by that name|does not exist|doesn't exist/.test(stderr)) return "";
  throw iptablesError(stderr, `list a chain of table ${table}`);
}

/**
 * The nft variant lists nothing of a table in which somebody has rules that no iptables can make, and calls that a success. Taken for an empty
 * table, everything would be made once more with every look.
 */
function assertListed(stdout: string): void {
  if (!stdout.includes("' is incompatible")) return;
  const complaint = /^# Table `(?:filter|nat|mangle)' is incompatible.*$/m.exec(stdout)?.[0];
  if (complaint !== undefined) throw iptablesError(complaint.slice(2), "list what is there");
}
