import { TestClock } from "@turnout/core/testing";
import { FAMILIES, familyOf, invariant } from "@turnout/core";
import { FaultSwitches, STAGE_ADDRESSES } from "@turnout/conformance";
import type { FakeHost, Fault, Flow, Packet, Trace } from "@turnout/conformance";
import type { HostAddress, LinuxWorld } from "@turnout/host";
import { nftStatementText } from "@turnout/host/nft-statement";
import type { NftStatement } from "@turnout/host/nft-statement";
import { createFakeLog, createFakeNetlink, flowsOf, rememberFlow } from "@turnout/host/testing";
import type { FakeNetlink } from "@turnout/host/testing";
import { FakeNft } from "@turnout/host/testing/nft";
import type { NftResult, FollowOptions } from "@turnout/host/testing/nft";
import { TABLE } from "../names.ts";
import { EXTERNAL_RULESET } from "./external-ruleset.ts";
import { linesOf } from "./inventory.ts";
import { tamperWith } from "./tamper.ts";

const START_MS = 1_000_000;

/** The nft backend's host in memory, with more to look at than the kit needs. */
export interface NftFakeHost extends FakeHost {
  readonly world: LinuxWorld;
  /** What was logged, `level message {fields}`; the last thousand lines. */
  readonly lines: readonly string[];
  /** Another program runs nft; the input is one transaction. */
  nft(...statements: readonly NftStatement[]): NftResult;
  /** As `tamper`; gives the transaction. */
  tamperWith(random: () => number): readonly NftStatement[] | undefined;
  /** Everything there is, as `nft -j list ruleset` prints it, rules as they were given. */
  list(): string;
}

/**
 * Make a host with nft and a kernel that exist in memory: for the conformance kit, and for tests of this backend.
 *
 * Shape: it begins with the stage's addresses of node1 and with tables of somebody else; see {@link FakeNft}.
 * Edges: UDP flows don't time out: their clients are taken to keep them alive. There are no routes.
 */
export function createFakeHost(): NftFakeHost {
  return new FakeNftHost();
}

class FakeNftHost implements NftFakeHost {
  readonly world: LinuxWorld;
  readonly #faults = new FaultSwitches();
  readonly #clock = new TestClock(START_MS);
  readonly #netlink: FakeNetlink = createFakeNetlink();
  readonly #log = createFakeLog();
  readonly #nft = new FakeNft({ clock: this.#clock, netlink: this.#netlink, faults: this.#faults });
  #local: ReadonlySet<string> = new Set();

  constructor() {
    this.world = { exec: this.#nft.exec, netlink: this.#netlink, clock: this.#clock, log: this.#log };
    this.setAddresses(STAGE_ADDRESSES);
    this.nft(...EXTERNAL_RULESET);
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
    return this.#nft.trace(packet, this.#following(random));
  }

  connect(packet: Packet, random: () => number): Trace {
    const trace = this.#nft.connect(packet, this.#following(random));
    if (trace.is === "forward" || trace.is === "pass") rememberFlow(this.#netlink, packet, trace.endpoint);
    return trace;
  }

  setFault(fault: Fault | undefined): void {
    this.#faults.setFault(fault);
  }

  refuse(addresses: readonly string[]): void {
    this.#faults.refuse(addresses);
  }

  tamper(random: () => number): string | undefined {
    return this.tamperWith(random)?.map(nftStatementText).join("; ");
  }

  tamperWith(random: () => number): readonly NftStatement[] | undefined {
    const statements = tamperWith(this.#nft.ruleset, random);
    if (statements === undefined) return undefined;
    const { isDone, stderr } = this.nft(...statements);
    invariant(isDone, `tampering goes through: ${statements.map(nftStatementText).join("; ")}: ${stderr}`);
    return statements;
  }

  own(): readonly string[] {
    return linesOf(this.#nft.ruleset, ({ name }) => name === TABLE);
  }

  written(): number {
    return this.#nft.written;
  }

  external(): readonly string[] {
    return linesOf(this.#nft.ruleset, ({ name }) => name !== TABLE);
  }

  nft(...statements: readonly NftStatement[]): NftResult {
    return this.#nft.run(statements);
  }

  list(): string {
    return this.#nft.list();
  }

  #following(random: () => number): FollowOptions {
    return { isLocal: (address) => this.#local.has(address) || (address.startsWith("127.") && this.#local.has("127.0.0.1")), random };
  }
}
