import { ProxyError } from "@turnout/core";
import type { Clock, Exec } from "@turnout/core";
import type { FaultSwitches, Packet, Trace } from "@turnout/conformance";
import type { FakeNetlink } from "../fake-netlink.ts";
import { nftStatementText } from "../../nft-statement/nft-statement.ts";
import type { NftTable } from "../../netlink/nft-table.ts";
import { nftError } from "../../nft/errors.ts";
import { createNftExec } from "./fake-exec.ts";
import { listedTable } from "./listed-table.ts";
import { NftEngine } from "./nft-engine.ts";
import type { NftResult } from "./nft-engine.ts";
import type { Ruleset } from "./ruleset.ts";
import { tracePacket } from "./tracer.ts";
import { UndoLog } from "./undo-log.ts";

/** Pids as the kernel would name them: the proxy's nft, and somebody's. */
const OWN_PID = 4_242;
const EXTERNAL_PID = 6_666;

const NO_MEMORY: NftResult = { isDone: false, stdout: "", stderr: "Error: Could not process rule: Cannot allocate memory\n", changed: [] };

/** What the fake shares with the rest of its host. */
export interface FakeNftHost {
  readonly clock: Pick<Clock, "nowMs">;
  /** Told of each commit. */
  readonly netlink: FakeNetlink;
  /** Asked before each change that the proxy makes. */
  readonly faults: FaultSwitches;
}

/** How a packet is followed. */
export interface FollowOptions {
  isLocal(address: string): boolean;
  /** In [0, 1). */
  readonly random: () => number;
}

/**
 * nft and the kernel's ruleset behind it, in memory: a part of a fake host.
 *
 * Shape: it begins empty. Its nft understands what Turnout's backends write and what a foreign hand is likely to; the rest of nft's language is
 * refused as a syntax error.
 * Edges: it behaves like nft 1.0.6 on Linux 6.18, checked against them by `real-nft.test.ts` of the nft backend.
 */
export class FakeNft {
  /** What the proxy runs; its changes fail as the switches say. */
  readonly exec: Exec;
  readonly #host: FakeNftHost;
  readonly #engine = new NftEngine();
  #written = 0;

  constructor(host: FakeNftHost) {
    this.#host = host;
    this.exec = createNftExec((text, file) => this.#runOwn(text, file));
    host.netlink.serveNft({
      read: (family, table) => this.#table(family, table),
      write: (statements) => this.#write(statements.map((statement) => `${nftStatementText(statement)}\n`).join("")),
      remove: (family, table) => void this.#write(`delete table ${family} ${table}\n`),
    });
  }

  get ruleset(): Ruleset {
    return this.#engine.ruleset;
  }

  /** How many elements, chains and so on the proxy has written. */
  get written(): number {
    return this.#written;
  }

  /** Somebody else runs nft; the input is one transaction. */
  run(text: string): NftResult {
    return this.#commit(text, "/dev/stdin", EXTERNAL_PID);
  }

  /** Everything there is, as `nft -j list ruleset` prints it. */
  list(): string {
    return this.#engine.run("list ruleset", this.#host.clock.nowMs(), "").stdout;
  }

  /** Follow the first packet of a connection; what rules learn of it stays. See {@link tracePacket}. */
  connect(packet: Packet, options: FollowOptions): Trace {
    return this.#follow(packet, options, new UndoLog());
  }

  /** As {@link FakeNft.connect}, and nothing stays behind. */
  trace(packet: Packet, options: FollowOptions): Trace {
    const undo = new UndoLog();
    const trace = this.#follow(packet, options, undo);
    undo.rollBack();
    return trace;
  }

  /** What netlink answers: what is listed. */
  #table(family: "ip" | "ip6", table: string): NftTable | undefined {
    const { isDone, stdout } = this.#engine.run(`list table ${family} ${table}`, this.#host.clock.nowMs(), "");
    return isDone ? listedTable(stdout) : undefined;
  }

  /** What netlink is given. @throws {ProxyError} what the kernel refuses. */
  #write(text: string): boolean {
    const answer = this.#runOwn(text, "", "unreported");
    if (answer === "killed") throw new ProxyError("tool_failed", "a transaction can't be sent");
    if (!answer.isDone) throw nftError(answer.stderr, "apply a transaction");
    return answer.changed.length > 0;
  }

  #follow(packet: Packet, { isLocal, random }: FollowOptions, undo: UndoLog): Trace {
    return tracePacket(this.ruleset, packet, { isLocal, random, nowMs: this.#host.clock.nowMs(), undo });
  }

  #runOwn(text: string, file: string, reporting: "reported" | "unreported" = "reported"): NftResult | "killed" {
    const when = isChange(text) ? this.#host.faults.next(text) : undefined;
    switch (when) {
      case undefined:
        return this.#commit(text, file, OWN_PID, reporting);
      case "before":
        return NO_MEMORY;
      case "during":
        return "killed";
      case "after":
        this.#commit(text, file, OWN_PID);
        return "killed";
    }
  }

  #commit(text: string, file: string, pid: number, reporting: "reported" | "unreported" = "reported"): NftResult {
    const { clock, netlink } = this.#host;
    const answer = this.#engine.run(text, clock.nowMs(), file);
    if (pid === OWN_PID && answer.changed.length > 0) this.#written += countWritten(text);
    if (answer.changed.length > 0 && reporting === "reported") netlink.commitNft({ pid, process: "nft", tables: answer.changed });
    return answer;
  }
}

/** How many elements, chains and so on an input writes. */
function countWritten(text: string): number {
  const counts = text.split("\n").map((line) => {
    const [, elements] = /^\s*(?:add|create|delete) element [^{]*\{(.*)\}/.exec(line) ?? [];
    return elements === undefined ? Number(isChange(line)) : elements.split(",").length;
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Barriers and listings are no changes. */
function isChange(text: string): boolean {
  return /^\s*(?:add|create|insert|replace|delete|flush)\s/.test(text);
}
