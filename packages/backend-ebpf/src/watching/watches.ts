import { FingerprintWatch } from "@turnout/host";
import { ElementSpace } from "@turnout/host/bpf";
import type { FingerprintChanges, Fingerprints } from "@turnout/host";
import { DIGESTED, partsOf, readContents, writtenParts } from "../pins/contents.ts";
import { isInMap } from "../bytes/elements.ts";
import type { WrittenMap } from "../bytes/elements.ts";
import type { Step } from "../plan.ts";
import type { PinnedMaps } from "../pins/pinned-maps.ts";
import { readPins, readPlaces, readSizes, touchedParts } from "./fingerprints.ts";
import type { FingerprintSources } from "./fingerprints.ts";
import type { EbpfWorld } from "../world.ts";

/** Looking takes this share of a core at most: at sizes and pins two tenths of a millisecond, at places a file for each program. */
const OFTEN_SHARE = 0.001;
const PLACES_SHARE = 0.001;

/** What is watched. */
export interface WatchSources extends FingerprintSources {
  readonly maps: Pick<PinnedMaps, "open" | "folder" | "programs" | "takeOpenings">;
  readonly world: FingerprintSources["world"] & Pick<EbpfWorld, "clock">;
}

/**
 * Watches for others' changes, which the kernel doesn't notify: by how much memory maps take, by what is attached and pinned, and by what the maps
 * hold.
 *
 * Shape: what is cheaper to look at is looked at more often. What is replaced in a map is told by nothing but its contents, which are looked at more
 * often once somebody has opened the map by its pin.
 */
export class Watches {
  /** Sizes of maps, and pins. */
  readonly #often: FingerprintWatch;
  readonly #places: FingerprintWatch;
  readonly #contents: readonly FingerprintWatch[];

  constructor(sources: WatchSources) {
    const { maps, world } = sources;
    const { clock } = world;
    const pollOften = (): Fingerprints => {
      this.#noteOpenings(maps.takeOpenings());
      return new Map([...readSizes(maps), ...readPins(sources)]);
    };
    this.#often = new FingerprintWatch({ clock, look: pollOften, share: OFTEN_SHARE, onReported: (changes) => this.#forget(changes) });
    // What is seen often is not told of twice.
    const beforeReporting = (): Promise<void> => this.#often.look();
    this.#places = new FingerprintWatch({ clock, look: () => readPlaces(sources), share: PLACES_SHARE, beforeReporting });
    this.#contents = DIGESTED.map(({ names, share }) => {
      const space = new ElementSpace();
      return new FingerprintWatch({ clock, look: () => readContents(maps, names, space), isExpensive: true, share, beforeReporting });
    });
  }

  /** Write what steps say. @throws what `work` throws. */
  during<T>(steps: readonly Step[], work: () => Promise<T>): Promise<T> {
    const parts = writtenParts(steps);
    // The usual change is one of elements: looking at all that is attached, before and after it, would take as long as the change.
    const changesPlaces = steps.length === 0 || !steps.every(({ object }) => isInMap(object));
    const written = [this.#often, ...(changesPlaces ? [this.#places] : []), ...this.#contents];
    return written.reduce((inner, watch) => () => watch.during(inner, parts), work)();
  }

  /** A function that tells whether nothing of ours has been written, or begun, since this moment. */
  sinceNow(): () => boolean {
    return this.#often.sinceNow();
  }

  /** What was seen often changes what is seen rarely. */
  #forget(changes: FingerprintChanges): void {
    const { maps, attached } = touchedParts(changes);
    this.#places.forget(Array.from(attached, (key) => `link ${key}`));
    const parts = [...maps.keys()].flatMap(partsOf);
    for (const watch of this.#contents) watch.forget(parts);
  }

  /** Whoever opens a map may be about to write to it, which is seen in what it holds alone if a value is replaced. */
  #noteOpenings(opened: ReadonlySet<WrittenMap>): void {
    for (const [index, watch] of this.#contents.entries())
      if (DIGESTED[index]?.names.some((name) => opened.has(name)) === true) watch.hurry();
  }

  /** As {@link FingerprintWatch.follow}. */
  follow(signal: AbortSignal): readonly AsyncIterable<FingerprintChanges>[] {
    return [this.#often, this.#places, ...this.#contents].map((watch) => watch.follow(signal));
  }
}
