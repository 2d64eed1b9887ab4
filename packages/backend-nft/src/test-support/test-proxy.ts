import { Ledger } from "@turnout/core";
import type { Backend, IPFamily } from "@turnout/core";
import type { ServiceFixture } from "@turnout/core/testing";
import type { NftStatement } from "@turnout/host/nft-statement";
import type { LinuxWorld } from "@turnout/host";
import { nftModule } from "../module.ts";
import type { NftObject } from "../objects.ts";
import type { NftFacts } from "../options.ts";
import type { Transaction } from "../plan.ts";
import { FACTS, stateOf } from "./states.ts";

/** A backend on a fake host, with its ledger: what a proxy process is to the kernel. For tests. */
export class TestProxy {
  readonly ledger: Ledger<NftObject> = new Ledger<NftObject>();
  readonly backend: Backend<NftFacts, NftObject, Transaction>;
  readonly #family: IPFamily;
  readonly #nowMs: () => number;

  constructor(backend: Backend<NftFacts, NftObject, Transaction>, family: IPFamily, nowMs: () => number) {
    this.backend = backend;
    this.#family = family;
    this.#nowMs = nowMs;
  }

  /** Sync to a state; resolves to the statements of the plan, a list for each transaction. */
  async sync(fixtures: readonly ServiceFixture[]): Promise<readonly (readonly NftStatement[])[]> {
    const { rows, node } = stateOf(fixtures, this.#family);
    const context = { node, host: FACTS };
    this.ledger.setAll(this.backend.skeleton(context), new Map([...rows].map(([key, row]) => [key, this.backend.render(row, context)])));
    const delta = this.ledger.delta(this.#nowMs());
    const plan = this.backend.plan(delta);
    const outcome = await this.backend.apply(plan, new AbortController().signal);
    this.ledger.commit(delta, outcome);
    return plan.steps.map(({ statements }) => statements);
  }

  async adopt(): Promise<void> {
    this.ledger.adopt(await this.backend.observe(new AbortController().signal));
  }
}

/** Open a backend on a world. */
export async function openProxy(world: LinuxWorld, family: IPFamily): Promise<TestProxy> {
  const backend = (await nftModule.open(nftModule.parseOptions({}), world, new AbortController().signal)).family(family);
  return new TestProxy(backend, family, () => world.clock.nowMs());
}
