import { SignWatch } from "@turnout/host";
import type { SignChanges, Fingerprints } from "@turnout/host";
import type { Step } from "./plan.ts";
import { contentsOf, filledSets, readContents, readServers, readSets, setFingerprint, touchedBy, writtenContents } from "./signs.ts";
import type { SignSources } from "./signs.ts";
import type { IpvsWorld } from "./world.ts";

/** Looking takes these shares of a core at most, in each family. */
const SERVERS_SHARE = 0.002;
const SETS_SHARE = 0.001;
const CONTENTS_SHARE = 0.001;

/** What is watched. */
export interface WatchSources extends SignSources {
  readonly world: SignSources["world"] & Pick<IpvsWorld, "clock">;
}

/** Watches for others' changes, which the kernel doesn't notify. What is cheaper to look at is looked at more often. */
export class Watches {
  /** Virtual servers and how many real ones each has, addresses, legacy tables. */
  readonly #servers: SignWatch;
  /** Members of those sets that have had some. */
  readonly #sets: SignWatch;
  /** Real servers and their weights, and all sets. */
  readonly #contents: SignWatch;
  readonly #filledSets = new Set<string>();

  constructor(sources: WatchSources) {
    const { clock } = sources.world;
    this.#servers = new SignWatch({
      clock,
      look: () => readServers(sources),
      share: SERVERS_SHARE,
      onReported: (changes) => this.#forget(changes),
    });
    this.#sets = new SignWatch({
      clock,
      look: () => readSets(sources, this.#filledSets),
      share: SETS_SHARE,
      onReported: (changes) => this.#contents.forget(changes.keys()),
    });
    this.#contents = new SignWatch({
      clock,
      look: () => this.#lookAtContents(sources),
      isExpensive: true,
      share: CONTENTS_SHARE,
      // What is seen often is not told of twice.
      beforeTelling: async () => {
        await this.#servers.look();
        await this.#sets.look();
      },
    });
  }

  /** Write what steps say. @throws what `work` throws. */
  during<T>(steps: readonly Step[], work: () => Promise<T>): Promise<T> {
    const parts = writtenContents(steps);
    return this.#servers.during(() => this.#sets.during(() => this.#contents.during(work, parts)));
  }

  /** A function that tells whether nothing of ours has been written, or begun, since this moment. */
  sinceNow(): () => boolean {
    return this.#servers.sinceNow();
  }

  /** Look at what is cheap now: the kernel has told of something. */
  look(): Promise<void> {
    return this.#servers.look();
  }

  async #lookAtContents(sources: WatchSources): Promise<Fingerprints> {
    const signs = await readContents(sources);
    const fresh = filledSets(signs, sources.family).filter((name) => !this.#filledSets.has(name));
    // Which sets are looked at is nobody's change.
    this.#sets.forget(fresh.map(setFingerprint));
    for (const name of fresh) this.#filledSets.add(name);
    return signs;
  }

  #forget(changes: SignChanges): void {
    this.#contents.forget(Array.from(touchedBy(changes).parts, contentsOf));
  }

  /** As {@link SignWatch.follow}. */
  follow(signal: AbortSignal): readonly AsyncIterable<SignChanges>[] {
    return [this.#servers, this.#sets, this.#contents].map((watch) => watch.follow(signal));
  }
}
