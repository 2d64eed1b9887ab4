import type { BackendModule, IPFamily, World } from "@turnout/core";
import type { OtherProxy } from "../insight/proxy-view.ts";
import {
  clearLeftovers,
  otherDataplanes,
  reasonToKeep,
  type Cleared,
  type Dataplane,
  type Finder,
  type LeftoverOptions,
  type ReportedCauses,
} from "./leftovers.ts";
import { OtherProxies } from "./other-proxies.ts";

/** What {@link FormerProxies} works with. */
export interface FormerProxiesOptions {
  readonly module: Pick<BackendModule, "name" | "residence">;
  /** The one in use. */
  readonly backend: Finder;
  readonly family: IPFamily;
  readonly world: World;
  /** Undefined: nobody looks for any. */
  readonly leftovers?: LeftoverOptions | undefined;
  readonly reported: ReportedCauses;
  readonly isDryRun: boolean;
  readonly isOnce: boolean;
  readonly firstWaitMs: number;
  /** In how many dataplanes others have rules in force, after each later look. */
  readonly onPoll: (count: number) => void;
}

/** What becomes of other service proxies' rules beside one family's. To be called when the own ones are in force. */
export class FormerProxies {
  readonly #options: FormerProxiesOptions;
  readonly #settled = Promise.withResolvers<void>();
  readonly #standalone = Promise.withResolvers<void>();
  #others: OtherProxies | undefined;

  constructor(options: FormerProxiesOptions) {
    this.#options = options;
  }

  /** Other proxies that were seen last. */
  get found(): readonly OtherProxy[] {
    return this.#others?.found ?? [];
  }

  /** Resolves when what a former proxy left is gone or stays. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  /** Resolves when no more is looked for that takes rights besides the backend's. */
  get standalone(): Promise<void> {
    return this.#standalone.promise;
  }

  /** Remove what former proxies left, or tell of it. */
  async clear(signal: AbortSignal): Promise<void> {
    await this.#clear(await this.#dataplanes(), signal);
  }

  /** Do so, and look later whether one of them is there still. Goes on until aborted. */
  async watch(signal: AbortSignal): Promise<void> {
    const { family, world, leftovers, isDryRun, firstWaitMs, onPoll } = this.#options;
    const dataplanes = await this.#dataplanes();
    const { removed, staying } = await this.#clear(dataplanes, signal);
    this.#settled.resolve();
    // Where nothing was removed it is less likely that somebody makes it again: not worth keeping rights for.
    if (removed.size === 0) this.#standalone.resolve();
    if (leftovers === undefined || isDryRun) return;
    const { clock, log } = world;
    this.#others = new OtherProxies({ family, dataplanes, staying, firstWaitMs, clock, log, onPoll });
    await this.#others.watch(signal, () => this.#standalone.resolve());
  }

  /** Where leftovers may be; the own one first. */
  async #dataplanes(): Promise<readonly Dataplane[]> {
    const { module, backend, family, world, leftovers } = this.#options;
    if (leftovers === undefined) return [];
    const own: Dataplane = { name: module.name, isInUse: true, visit: (work) => work(backend) };
    return [own, ...otherDataplanes(await leftovers.others(), family, world)];
  }

  async #clear(dataplanes: readonly Dataplane[], signal: AbortSignal): Promise<Cleared> {
    const { module, family, world, leftovers, reported, isDryRun, isOnce } = this.#options;
    const keptBecause = reasonToKeep(leftovers?.isKept === true, isDryRun, module.residence);
    return await clearLeftovers({ family, dataplanes, keptBecause, mayWait: !isOnce, reported, log: world.log }, signal);
  }
}
