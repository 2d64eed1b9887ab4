import { invariant } from "@turnout/core";
import type { FakeHost, Packet, Trace } from "@turnout/conformance";
import type { LinuxWorld } from "@turnout/host";
import { LinuxFakeHost } from "@turnout/fakes";
import type { FollowOptions } from "@turnout/fakes";
import { FakeNft } from "@turnout/fakes/nft";
import { nftStatementText } from "@turnout/host/nft-statement";
import type { NftStatement } from "@turnout/host/nft-statement";
import type { NftResult } from "@turnout/fakes/nft";
import { TABLE } from "../names.ts";
import { EXTERNAL_RULESET } from "./external-ruleset.ts";
import { linesOf } from "./inventory.ts";
import { tamperWith } from "./tamper.ts";

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

class FakeNftHost extends LinuxFakeHost implements NftFakeHost {
  readonly world: LinuxWorld;
  readonly #nft: FakeNft;

  constructor() {
    super();
    const { clock, netlink, faults, log } = this;
    this.#nft = new FakeNft({ clock, netlink, faults });
    this.world = { exec: this.#nft.exec, netlink, clock, log };
    this.nft(...EXTERNAL_RULESET);
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

  protected follow(packet: Packet, options: FollowOptions, stays: boolean): Trace {
    return this.#nft.follow(packet, options, stays);
  }
}
