import { FingerprintWatch } from "@turnout/host";
import type { FingerprintChanges, Fingerprints } from "@turnout/host";
import type { Step } from "../plan.ts";
import {
  areServersGone,
  contentsOf,
  filledSets,
  readContents,
  readServers,
  readSets,
  setFingerprint,
  touchedBy,
  writtenContents,
} from "./fingerprints.ts";
import type { FingerprintSources } from "./fingerprints.ts";
import type { IpvsWorld } from "../world.ts";

/** Looking takes these shares of a core at most, in each family. */
const SERVERS_SHARE = 0.002;
const SETS_SHARE = 0.001;
const CONTENTS_SHARE = 0.001;

/** What is watched. */
export interface WatchSources extends FingerprintSources {
  readonly world: FingerprintSources["world"] & Pick<IpvsWorld, "clock">;
}

/** Watches for others' changes, which the kernel doesn't notify. What is cheaper to look at is looked at more often. */
export class Watches {
  /** Virtual servers and how many real ones each has, addresses, legacy tables. */
  readonly #servers: FingerprintWatch;
  /** Members of those sets that have had some. */
  readonly #sets: FingerprintWatch;
  /** Real servers and their weights, and all sets. */
  readonly #contents: FingerprintWatch;
  readonly #filledSets = new Set<string>();

  constructor(sources: WatchSources) {
    const { clock } = sources.world;
    this.#servers = new FingerprintWatch({
      clock,
      look: () => readServers(sources),
      share: SERVERS_SHARE,
      onReported: (changes) => this.#forget(changes),
      isSuspicious: (now, before) => areServersGone(now) && !areServersGone(before),
    });
    this.#sets = new FingerprintWatch({
      clock,
      look: () => readSets(sources, this.#filledSets),
      share: SETS_SHARE,
      onReported: (changes) => this.#contents.forget(changes.keys()),
    });
    this.#contents = new FingerprintWatch({
      clock,
      look: () => this.#lookAtContents(sources),
      isExpensive: true,
      share: CONTENTS_SHARE,
      // What is seen often is not told of twice.
      beforeReporting: async () => {
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
    const fingerprints = await readContents(sources);
    const fresh = filledSets(fingerprints, sources.family).filter((name) => !this.#filledSets.has(name));
    // Which sets are looked at is nobody's change.
    this.#sets.forget(fresh.map(setFingerprint));
    for (const name of fresh) this.#filledSets.add(name);
    return fingerprints;
  }

  #forget(changes: FingerprintChanges): void {
    this.#contents.forget(Array.from(touchedBy(changes).parts, contentsOf));
  }

  /** As {@link FingerprintWatch.follow}. */
  follow(signal: AbortSignal): readonly AsyncIterable<FingerprintChanges>[] {
    return [this.#servers, this.#sets, this.#contents].map((watch) => watch.follow(signal));
  }
}
