import { ProxyError } from "@turnout/core";
import type { Clock, Exec, ExecResult, ExecSession } from "@turnout/core";
import type { Netlink } from "../netlink/netlink.ts";
import { nftStatementText } from "../nft-statement/nft-statement.ts";
import type { NftElements, NftStatement } from "../nft-statement/nft-statement.ts";
import { EchoCount } from "../watch/own-commits.ts";
import type { OwnCommits } from "../watch/own-commits.ts";
import { nftError } from "./errors.ts";
import { readListing } from "./listing.ts";
import { Patience } from "./patience.ts";

/** The families of tables that we use. */
type NftFamily = "ip" | "ip6" | "inet";

/** A transaction of up to 64 kB takes some ms; on a slow machine beside another's large commit, a second. */
const KEPT_PATIENCE = { baseMs: 3_000, perKBMs: 20 };
/** A MB takes a third of a second. */
const ALONE_PATIENCE = { baseMs: 5_000, perKBMs: 10 };
/** What there is to list is known only afterwards: 20 s for a million elements. */
const LIST_PATIENCE = { baseMs: 60_000, perKBMs: 0 };
/** A kept nft never returns memory; larger transactions get a process of their own. Bytes. */
const KEPT_TEXT_MAX = 64 * 1024;
/** A kept nft is replaced after this many transactions, whatever its memory. */
const KEPT_USES_MAX = 20_000;
/** A kept nft that has had nothing to do for so long is ended, because it takes 5 MB, and most changes are of elements alone. */
const KEPT_REST_MS = 10_000;

/** What a session works with. */
export interface NftSessionHost {
  readonly exec: Exec;
  /** The count of our commits that all sessions in this network namespace share. */
  readonly own: OwnCommits;
  /** The kernel that the programs of `exec` change; absent: nft writes elements, too. */
  readonly kernel?: { readonly netlink: Pick<Netlink, "prepareNftWrite">; readonly clock: Pick<Clock, "nowMs"> };
}

/**
 * Runs transactions: those of elements alone go to the kernel as they are. What has to be compiled goes through nft: small ones through one kept
 * `nft -i`, which saves a process start for each, large ones through a process of their own.
 *
 * Edges: one transaction at a time; a transaction takes effect as a whole or not at all. An nft that hangs is given up when what was asked
 * should long be done, and the next transaction gets another.
 */
export class NftSession {
  readonly #exec: Exec;
  readonly #nft: string;
  readonly #own: OwnCommits;
  readonly #kernel: NftSessionHost["kernel"];
  readonly #keptPatience = new Patience(KEPT_PATIENCE);
  readonly #alonePatience = new Patience(ALONE_PATIENCE);
  readonly #listPatience = new Patience(LIST_PATIENCE);
  #kept: ExecSession | undefined;
  #uses = 0;
  #rest: NodeJS.Timeout | undefined;

  constructor({ exec, own, kernel }: NftSessionHost, nftPath: string) {
    this.#exec = exec;
    this.#own = own;
    this.#kernel = kernel;
    this.#nft = nftPath;
  }

  /** Transactions of ours whose echo from the kernel has not been counted off yet. */
  readonly echoes: EchoCount = new EchoCount();

  /**
   * Carry out one transaction that changes the table which is watched, so that its echo is expected.
   * @throws {ProxyError} what nft or the kernel complained about; then nothing of it took effect.
   */
  commit(statements: readonly NftStatement[], signal: AbortSignal): Promise<void> {
    return this.prepare(statements)(signal);
  }

  /** Make a transaction ready while another one is under way; what comes back carries it out, as {@link NftSession.commit} does. */
  prepare(statements: readonly NftStatement[]): (signal: AbortSignal) => Promise<void> {
    const kernel = this.#kernel;
    if (kernel === undefined || !statements.every(isElements)) {
      return (signal) => this.echoes.during(() => this.#carryOut(statements.map(nftStatementText), signal));
    }
    const write = kernel.netlink.prepareNftWrite(statements);
    return () =>
      this.echoes.without(
        () => this.#own.during(1, write),
        () => kernel.clock.nowMs(),
      );
  }

  /** Start the nft that is kept, so that it is there when it is asked. */
  start(): void {
    this.#keptNft();
    this.#rests();
  }

  /** Remove a table that isn't watched, if it is there: an echo that is expected and never comes would hide somebody else's next change. */
  async dropTable(family: NftFamily, table: string, signal: AbortSignal): Promise<void> {
    try {
      // Made first, so that deleting it can't fail for its absence.
      await this.#carryOut([`add table ${family} ${table}`, `delete table ${family} ${table}`], signal);
    } catch (error) {
      // A kernel without this family has none of its tables, and makes none.
      if (!ProxyError.is(error, "host_unsupported")) throw error;
      if (readListing(await this.listTables(family, signal)).tables.includes(table)) throw error;
    }
  }

  /** List a family's tables as JSON. */
  async listTables(family: NftFamily, signal: AbortSignal): Promise<string> {
    const { code, stdout, stderr } = await this.#list(["tables", family], signal);
    if (code !== 0) throw nftError(stderr, `list tables ${family}`);
    return stdout;
  }

  /** List a table as JSON; undefined when it doesn't exist. */
  async listTable(family: NftFamily, table: string, signal: AbortSignal): Promise<string | undefined> {
    const { code, stdout, stderr } = await this.#list(["table", family, table], signal);
    if (code === 0) return stdout;
    const error = nftError(stderr, `list table ${family} ${table}`);
    if (ProxyError.is(error, "not_found")) return undefined;
    throw error;
  }

  /** List a set as JSON. @throws {ProxyError} `not_found` when it doesn't exist. */
  async listSet(family: "ip" | "ip6", table: string, set: string, signal: AbortSignal): Promise<string> {
    const { code, stdout, stderr } = await this.#list(["set", family, table, set], signal);
    if (code !== 0) throw nftError(stderr, `list set ${family} ${table} ${set}`);
    return stdout;
  }

  close(): void {
    clearTimeout(this.#rest);
    this.#kept?.close();
    this.#kept = undefined;
    this.#uses = 0;
  }

  #list(what: readonly string[], signal: AbortSignal): Promise<ExecResult> {
    return this.#listPatience.during(0, (timeoutMs) => this.#exec.run(this.#nft, ["-j", "list", ...what], { signal, timeoutMs }));
  }

  async #commitAlone(statements: readonly string[], timeoutMs: number, signal: AbortSignal): Promise<void> {
    const input = `${statements.join("\n")}\n`;
    const { code, stderr } = await this.#exec.run(this.#nft, ["-f", "-"], { input, signal, timeoutMs });
    if (code !== 0) throw nftError(stderr, "apply a transaction");
  }

  async #carryOut(statements: readonly string[], signal: AbortSignal): Promise<void> {
    const size = statements.reduce((sum, statement) => sum + statement.length + 2, 0);
    const commit = (): Promise<void> =>
      size > KEPT_TEXT_MAX
        ? this.#alonePatience.during(size, (timeoutMs) => this.#commitAlone(statements, timeoutMs, signal))
        : this.#keptPatience.during(size, (timeoutMs) => this.#commitKept(statements, timeoutMs));
    await this.#own.during(1, commit);
  }

  #keptNft(): ExecSession {
    if (this.#uses >= KEPT_USES_MAX) this.close();
    clearTimeout(this.#rest);
    return (this.#kept ??= this.#exec.open(this.#nft, ["-i"]));
  }

  /** From now on the kept nft has nothing to do. */
  #rests(): void {
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.close(), KEPT_REST_MS).unref();
  }

  async #commitKept(statements: readonly string[], timeoutMs: number): Promise<void> {
    const nft = this.#keptNft();
    // nft -i says nothing when a line succeeds. A line it can't parse makes it complain, and that ends the answer.
    const marker = `turnout-barrier-${++this.#uses}-end`;
    nft.write(`${statements.join("; ")}\n${marker}\n`);
    let answer: string;
    try {
      answer = await nft.readUntil(marker, timeoutMs);
      await nft.readUntil("^", timeoutMs);
    } catch (error) {
      this.close();
      throw error;
    }
    this.#rests();
    const complaints = answer.split("\n").filter((line) => line.includes("Error: "));
    // The last complaint is about the marker itself; any before it is about the transaction.
    if (complaints.length > 1) throw nftError(answer, "apply a transaction");
  }
}

function isElements(statement: NftStatement): statement is NftElements {
  return typeof statement !== "string";
}
