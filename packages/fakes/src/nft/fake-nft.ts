import { ProxyError } from "@turnout/core";
import type { Clock, Exec } from "@turnout/core";
import type { FaultSwitches, Packet, Trace } from "@turnout/conformance";
import { nftError } from "@turnout/host/nft";
import { isElements, nftStatementText } from "@turnout/host/nft-statement";
import type { NftStatement } from "@turnout/host/nft-statement";
import type { FakeNetlink } from "@turnout/host/testing";
import type { FollowOptions } from "../host/linux-fake-host.ts";
import { tracePacket } from "../host/trace-packet.ts";
import { execute } from "./execute.ts";
import type { Transaction } from "./execute.ts";
import { createNftExec } from "./fake-exec.ts";
import type { NftResult } from "./fake-exec.ts";
import { netlinkTable, rulesetText } from "./json.ts";
import { learnKey } from "./learn-key.ts";
import { Refusal } from "./refusal.ts";
import { Ruleset } from "./ruleset.ts";
import { UndoLog } from "./undo-log.ts";
import { validateTable } from "./validate.ts";

/** Pids as the kernel would name them: the proxy's nft, and another program's. */
const OWN_PID = 4_242;
const EXTERNAL_PID = 6_666;

/** What the fake shares with the rest of its host. */
export interface FakeNftHost {
  readonly clock: Pick<Clock, "nowMs">;
  /** Notified of each commit. */
  readonly netlink: FakeNetlink;
  /** Asked before each change that the proxy makes. */
  readonly faults: FaultSwitches;
}

/**
 * nft and the kernel's ruleset behind it, in memory: a part of a fake host.
 *
 * Shape: it begins empty. It takes what transactions are made of, not nft's language: that has one printer, which is tried on the real nft.
 * Edges: it behaves like nft 1.0.6 on Linux 6.18, checked against them by `real-nft.test.ts` of the nft backend. It has no intervals in sets.
 */
export class FakeNft {
  /** What the proxy runs; its changes fail as the switches say. */
  readonly exec: Exec;
  readonly ruleset: Ruleset = new Ruleset();
  readonly #host: FakeNftHost;
  #written = 0;

  constructor(host: FakeNftHost) {
    this.#host = host;
    this.exec = createNftExec((data) => this.#runOwn(data as readonly NftStatement[]));
    host.netlink.serveNft({
      read: (family, name) => {
        const table = this.ruleset.tables.get(`${family} ${name}`);
        return table && netlinkTable(table, this.#nowMs());
      },
      write: (statements) => this.#write(statements),
      remove: (family, name) => void this.#write([{ delete: { table: { family, name } } }]),
    });
  }

  /** How many elements, chains and so on the proxy has written. */
  get written(): number {
    return this.#written;
  }

  /** Another program runs nft; the input is one transaction. */
  run(statements: readonly NftStatement[]): NftResult {
    return this.#commit(statements, EXTERNAL_PID);
  }

  /** Everything there is, as `nft -j list ruleset` prints it, rules as they were given. */
  list(): string {
    return rulesetText(this.ruleset, this.#nowMs());
  }

  /** Follow the first packet of a connection; what rules learn of it stays where it `stays`. See {@link tracePacket}. */
  follow(packet: Packet, { isLocal, random }: FollowOptions, stays: boolean): Trace {
    const undo = new UndoLog();
    const family = packet.family === "IPv4" ? "ip" : "ip6";
    const trace = tracePacket(packet, {
      tables: [...this.ruleset.tables.values()].filter((table) => table.family === family),
      // Loopback addresses are not this fake's business.
      routesLocalnet: true,
      isLocal,
      random,
      asked: ({ place }) => ({
        priority: 0,
        learn: (entry) => {
          const table = this.ruleset.tables.get(place);
          return table !== undefined && learnKey(table, entry, this.#nowMs(), undo);
        },
      }),
    });
    if (!stays) undo.rollBack();
    return trace;
  }

  #nowMs(): number {
    return this.#host.clock.nowMs();
  }

  /** What netlink is given. @throws {ProxyError} what the kernel refuses. */
  #write(statements: readonly NftStatement[]): boolean {
    const answer = this.#runOwn(statements, "unreported");
    if (answer === "killed") throw new ProxyError("tool_failed", "a transaction can't be sent");
    if (!answer.isDone) throw nftError(answer.stderr, "apply a transaction");
    return answer.changed.length > 0;
  }

  #runOwn(statements: readonly NftStatement[], reporting: "reported" | "unreported" = "reported"): NftResult | "killed" {
    const when = this.#host.faults.next(statements.map(nftStatementText).join("\n"));
    if (when === "before") return refused("Could not process rule: Cannot allocate memory");
    if (when === "during") return "killed";
    const answer = this.#commit(statements, OWN_PID, when === "after" ? "reported" : reporting);
    return when === "after" ? "killed" : answer;
  }

  /** All or nothing. */
  #commit(statements: readonly NftStatement[], pid: number, reporting: "reported" | "unreported" = "reported"): NftResult {
    const undo = new UndoLog();
    const transaction: Transaction = {
      ruleset: this.ruleset,
      undo,
      nowMs: () => this.#nowMs(),
      touched: new Set(),
      rerouted: new Set(),
    };
    try {
      for (const statement of statements) execute(statement, transaction);
      if (!undo.isEmpty) for (const table of transaction.rerouted) if (this.ruleset.tables.get(table.place) === table) validateTable(table);
    } catch (error) {
      undo.rollBack();
      if (error instanceof Refusal) return refused(error.message);
      throw error;
    }
    const changed = undo.isEmpty ? [] : [...transaction.touched].map(({ place }) => place);
    if (changed.length > 0 && pid === OWN_PID)
      this.#written += statements.reduce((sum, one) => sum + (isElements(one) ? one.elements.length : 1), 0);
    if (changed.length > 0 && reporting === "reported") this.#host.netlink.commitNft({ pid, process: "nft", tables: changed });
    return { isDone: true, stderr: "", changed };
  }
}

function refused(message: string): NftResult {
  return { isDone: false, stderr: `Error: ${message}\n`, changed: [] };
}
