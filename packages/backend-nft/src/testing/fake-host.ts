import { TestClock } from "@turnout/core/testing";
import { FAMILIES, familyOf, invariant } from "@turnout/core";
import type { FakeHost, Fault, Flow, Packet, Trace } from "@turnout/conformance";
import type { HostAddress, World } from "@turnout/core";
import { HOST_ADDRESSES, UPLINK } from "@turnout/conformance";
import { createFakeLog, createFakeNetlink, flowsOf, rememberFlow } from "@turnout/host/testing";
import type { FakeNetlink } from "@turnout/host/testing";
import { TABLE } from "../names.ts";
import { createNftExec } from "./fake-exec.ts";
import { FOREIGN_RULESET } from "./foreign-ruleset.ts";
import { linesOf } from "./inventory.ts";
import { NftEngine } from "./nft-engine.ts";
import type { Answer } from "./nft-engine.ts";
import { tamperWith } from "./tamper.ts";
import { tracePacket } from "./tracer.ts";
import { UndoLog } from "./undo-log.ts";

/** Pids as the kernel would name them: the proxy's nft, and somebody's. */
const OWN_PID = 4_242;
const FOREIGN_PID = 6_666;
const START_MS = 1_000_000;
const STAGE_ADDRESSES: readonly HostAddress[] = FAMILIES.flatMap((family) =>
  HOST_ADDRESSES[family].map((ip, index) => ({ ip, prefixLength: family === "IPv4" ? 16 : 64, link: index === 0 ? "lo" : UPLINK })),
);

const NO_MEMORY: Answer = { isDone: false, stdout: "", stderr: "Error: Could not process rule: Cannot allocate memory\n", changed: [] };

/** The nft backend's host in memory, with more to look at than the kit needs. */
export interface NftFakeHost extends FakeHost {
  /** What was logged, `level message {fields}`; the last thousand lines. */
  readonly lines: readonly string[];
  /** Somebody else runs nft; the input is one transaction. */
  nft(text: string): Answer;
  /** Everything there is, as `nft -j list ruleset` prints it. */
  list(): string;
}

/**
 * Make a host with nft and a kernel that exist in memory: for the conformance kit, and for tests of this backend.
 *
 * Shape: it begins with the stage's addresses of node1 and with tables of somebody else. Its nft understands what this backend writes and
 * what a foreign hand is likely to; the rest of nft's language is refused as a syntax error.
 * Edges: it behaves like nft 1.0.6 on Linux 6.18, checked against them by `real-nft.test.ts`. UDP flows don't time out: their clients are
 * taken to keep them alive. There are no routes; see {@link tracePacket}.
 */
export function createFakeHost(): NftFakeHost {
  return new FakeNftHost();
}

class FakeNftHost implements NftFakeHost {
  readonly world: World;
  readonly #engine = new NftEngine();
  readonly #clock = new TestClock(START_MS);
  readonly #netlink: FakeNetlink;
  readonly #log = createFakeLog();
  #local: ReadonlySet<string> = new Set();
  #fault: Fault | undefined;
  #refused: readonly string[] = [];
  #changes = 0;

  constructor() {
    this.#netlink = createFakeNetlink();
    const exec = createNftExec((text, file) => this.#runOwn(text, file));
    this.world = { exec, netlink: this.#netlink, clock: this.#clock, log: this.#log };
    this.setAddresses(STAGE_ADDRESSES);
    this.nft(FOREIGN_RULESET);
  }

  get lines(): readonly string[] {
    return this.#log.lines;
  }

  get flows(): readonly Flow[] {
    return flowsOf(this.#netlink);
  }

  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#local = new Set(addresses.map(({ ip }) => ip));
    for (const family of FAMILIES) {
      this.#netlink.setAddresses(
        family,
        addresses.filter(({ ip }) => familyOf(ip) === family),
      );
    }
  }

  trace(packet: Packet, random: () => number): Trace {
    const undo = new UndoLog();
    const trace = this.#follow(packet, random, undo);
    undo.rollBack();
    return trace;
  }

  connect(packet: Packet, random: () => number): Trace {
    const trace = this.#follow(packet, random, new UndoLog());
    if (trace.is === "forward" || trace.is === "pass") rememberFlow(this.#netlink, packet, trace.endpoint);
    return trace;
  }

  setFault(fault: Fault | undefined): void {
    this.#fault = fault;
    this.#changes = 0;
  }

  refuse(addresses: readonly string[]): void {
    this.#refused = addresses;
  }

  tamper(random: () => number): string | undefined {
    const text = tamperWith(this.#engine.ruleset, random);
    if (text === undefined) return undefined;
    const { isDone, stderr } = this.nft(`${text}\n`);
    invariant(isDone, `tampering goes through: ${text}: ${stderr}`);
    return text;
  }

  own(): readonly string[] {
    return linesOf(this.#engine.ruleset, ({ name }) => name === TABLE);
  }

  foreign(): readonly string[] {
    return linesOf(this.#engine.ruleset, ({ name }) => name !== TABLE);
  }

  nft(text: string): Answer {
    return this.#commit(text, "/dev/stdin", FOREIGN_PID);
  }

  list(): string {
    return this.#engine.run("list ruleset", this.#clock.nowMs(), "").stdout;
  }

  #follow(packet: Packet, random: () => number, undo: UndoLog): Trace {
    const isLocal = (address: string): boolean => this.#local.has(address) || (address.startsWith("127.") && this.#local.has("127.0.0.1"));
    return tracePacket(this.#engine.ruleset, packet, { isLocal, random, nowMs: this.#clock.nowMs(), undo });
  }

  /** What the backend's nft is given; here is where it fails on command. */
  #runOwn(text: string, file: string): Answer | "killed" {
    const fault = this.#fault;
    if (isChange(text) && this.#refused.some((address) => text.includes(address))) return NO_MEMORY;
    if (fault === undefined || !isChange(text)) return this.#commit(text, file, OWN_PID);
    if (this.#changes++ < fault.afterChanges) return this.#commit(text, file, OWN_PID);
    this.#fault = undefined;
    switch (fault.when) {
      case "before":
        return NO_MEMORY;
      case "during":
        return "killed";
      case "after":
        this.#commit(text, file, OWN_PID);
        return "killed";
    }
  }

  #commit(text: string, file: string, pid: number): Answer {
    const answer = this.#engine.run(text, this.#clock.nowMs(), file);
    if (answer.changed.length > 0) this.#netlink.commitNft({ pid, process: "nft", tables: answer.changed });
    return answer;
  }
}

/** Barriers and listings are no changes. */
function isChange(text: string): boolean {
  return /^\s*(?:add|create|insert|replace|delete|flush)\s/.test(text);
}
