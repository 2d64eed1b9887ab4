import type { Clock, Exec, ExecResult, Log, StartedCommand } from "@turnout/core";
import type { Netlink } from "../netlink/netlink.ts";
import { isCrash } from "../exec/exec-errors.ts";
import { isElements, nftStatementText } from "../nft-statement/nft-statement.ts";
import type { NftStatement } from "../nft-statement/nft-statement.ts";
import { EchoCount } from "../watch/own-commits.ts";
import type { OwnCommits } from "../watch/own-commits.ts";
import { nftCrash } from "./crash.ts";
import { nftError } from "./errors.ts";
import { Patience } from "./patience.ts";

/** An nft that has waited for a transaction so long is ended, because it takes 5 MB, and most changes are of elements alone. */
const WAIT_MS = 10_000;
/** The nft of the next transaction is started so long after one: starting a process takes this one some ms, which are not to be in the way of a sync. */
const START_AFTER_MS = 100;

/** What a session works with. */
export interface NftSessionHost {
  readonly exec: Exec;
  /** The count of our commits that all sessions in this network namespace share. */
  readonly own: OwnCommits;
  readonly log: Pick<Log, "warn">;
  /** What the transactions change, e.g. `ip turnout`. */
  readonly table: string;
  /** The kernel that the programs of `exec` change; absent: nft writes elements, too. */
  readonly kernel?: { readonly netlink: Pick<Netlink, "prepareNftWrite">; readonly clock: Pick<Clock, "nowMs"> };
}

/**
 * Runs transactions: those of elements alone go to the kernel as they are. What has to be compiled goes through nft, each through a process of its
 * own, which has been started ahead where another one is likely.
 *
 * Edges: one transaction at a time; a transaction takes effect as a whole or not at all. An nft that hangs is given up when what was asked
 * should long be done.
 */
export class NftSession {
  readonly #exec: Exec;
  readonly #nft: string;
  readonly #log: Pick<Log, "warn">;
  readonly #own: OwnCommits;
  readonly #table: string;
  readonly #kernel: NftSessionHost["kernel"];
  readonly #patience = new Patience();
  /** Started, and waiting for its input. */
  #waiting: StartedCommand | undefined;
  /** Of what is next with that: its start or its end. */
  #timer: NodeJS.Timeout | undefined;
  /** nft crashed at other programs' sets, and reads none but ours since. */
  #isConfined = false;

  constructor({ exec, log, own, table, kernel }: NftSessionHost, nftPath: string) {
    this.#exec = exec;
    this.#log = log;
    this.#own = own;
    this.#table = table;
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
      return async (signal) => {
        await this.echoes.during(() => this.#carryOut(statements, signal));
        // Where there is one transaction of rules there are often more.
        this.#later(() => this.start(), START_AFTER_MS);
      };
    }
    const write = kernel.netlink.prepareNftWrite(statements);
    return () =>
      this.echoes.without(
        () => this.#own.during(1, write),
        () => kernel.clock.nowMs(),
      );
  }

  /** Start the nft of the next transaction, so that it is there when it is asked. */
  start(): void {
    this.#waiting ??= this.#open();
    this.#later(() => this.close(), WAIT_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#waiting?.close();
    this.#waiting = undefined;
  }

  async #carryOut(statements: readonly NftStatement[], signal: AbortSignal): Promise<void> {
    const input = `${statements.map(nftStatementText).join("\n")}\n`;
    const { code, stderr, signal: by } = await this.#own.during(1, () => this.#finish(input, statements, signal));
    if (by !== undefined && isCrash(by)) throw await nftCrash(this.#exec, this.#nft, by, signal);
    if (code !== 0) throw nftError(stderr, "apply a transaction");
  }

  /** Where nft crashes, it is tried once more with other programs' sets out of its sight: they are what it mostly can't read. */
  async #finish(input: string, data: readonly NftStatement[], signal: AbortSignal): Promise<ExecResult> {
    const attempt = (text: string): Promise<ExecResult> =>
      this.#patience.during(text.length, (timeoutMs) => this.#nextNft().finish(text, { signal, timeoutMs, data }));
    // What is listed at the end of the input decides what nft reads before it begins.
    const confined = `${input}list table ${this.#table}\n`;
    if (this.#isConfined) return await attempt(confined);
    const result = await attempt(input);
    if (result.signal === undefined || !isCrash(result.signal)) return result;
    this.#isConfined = true;
    const error = (await nftCrash(this.#exec, this.#nft, result.signal, signal)).message;
    this.#log.warn("nft crashed; from now on it reads no other program's sets, but all of Turnout's table for each transaction of rules", {
      table: this.#table,
      error,
    });
    return await attempt(confined);
  }

  #later(act: () => void, afterMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(act, afterMs).unref();
  }

  #open(): StartedCommand {
    // -t: what is listed is not looked at.
    return this.#exec.open(this.#nft, this.#isConfined ? ["-t", "-f", "-"] : ["-f", "-"]);
  }

  #nextNft(): StartedCommand {
    const nft = this.#waiting ?? this.#open();
    this.#waiting = undefined;
    return nft;
  }
}
