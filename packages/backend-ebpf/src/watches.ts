import { SignWatch } from "@turnout/host";
import type { SignChanges } from "@turnout/host";
import { DIGESTED, partsOf, readContents, writtenParts } from "./contents.ts";
import type { Step } from "./plan.ts";
import { readPlaces, readSizes, touchedParts } from "./signs.ts";
import type { SignSources } from "./signs.ts";
import type { EbpfWorld } from "./world.ts";

/** Looking at sizes takes this share of a core at most, and at places: each a few files for everything that is pinned. */
const SIZES_SHARE = 0.001;
const PLACES_SHARE = 0.001;

/**
 * Watches for others' changes, which the kernel doesn't notify: by how much memory maps take, by what is attached and pinned, and by what the maps
 * hold.
 *
 * Shape: what is cheaper to look at is looked at more often. What is replaced in a map is told by nothing but its contents.
 */
export class Watches {
  readonly #sizes: SignWatch;
  readonly #places: SignWatch;
  readonly #contents: readonly SignWatch[];

  constructor(sources: SignSources & { readonly world: Pick<EbpfWorld, "clock"> }) {
    const { maps, world } = sources;
    const { clock } = world;
    const onTold = (changes: SignChanges): void => {
      const parts = [...touchedParts(changes).maps].flatMap(partsOf);
      for (const watch of this.#contents) watch.forget(parts);
    };
    this.#places = new SignWatch({ clock, look: () => readPlaces(sources), share: PLACES_SHARE });
    this.#sizes = new SignWatch({ clock, look: () => readSizes(maps), share: SIZES_SHARE, onTold });
    // What the sizes tell of is not told twice.
    const beforeTelling = (): Promise<void> => this.#sizes.look();
    this.#contents = DIGESTED.map(
      ({ names, share }) => new SignWatch({ clock, look: () => readContents(maps, names), isDear: true, share, beforeTelling }),
    );
  }

  /** Write what steps say. @throws what `work` throws. */
  during<T>(steps: readonly Step[], work: () => Promise<T>): Promise<T> {
    const parts = writtenParts(steps);
    return [this.#sizes, this.#places, ...this.#contents].reduce((inner, watch) => () => watch.during(inner, parts), work)();
  }

  /** A function that tells whether nothing of ours has been written, or begun, since this moment. */
  sinceNow(): () => boolean {
    return this.#places.sinceNow();
  }

  /** As {@link SignWatch.follow}. */
  follow(signal: AbortSignal): readonly AsyncIterable<SignChanges>[] {
    return [this.#places, this.#sizes, ...this.#contents].map((watch) => watch.follow(signal));
  }
}
