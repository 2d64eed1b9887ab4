import { join } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import type { BpfMap } from "@turnout/host/bpf";
import { REMEMBERING_MAPS } from "./elements.ts";
import type { EbpfMap } from "./elements.ts";
import type { PinWorld } from "./pinned-maps.ts";

/** One map that is read, and the one that takes its place. */
interface Pair {
  readonly from: BpfMap;
  readonly to: BpfMap;
  /** Keys that were brought over. */
  readonly known: Set<string>;
}

/**
 * Brings what programs remember of clients and sockets from maps of another size to those that take their place.
 *
 * Edges: the new maps keep what they have already. What doesn't fit goes as the oldest does.
 */
export class CarryOver {
  readonly #pairs: readonly Pair[];

  private constructor(pairs: readonly Pair[]) {
    this.#pairs = pairs;
  }

  /** Open the maps of a folder, whose layout must be that of the others. */
  static open(root: string, folder: string, maps: ReadonlyMap<EbpfMap, BpfMap>, { bpf }: Pick<PinWorld, "bpf">): CarryOver {
    const pairs = REMEMBERING_MAPS.flatMap((name): readonly Pair[] => {
      const to = maps.get(name);
      const from = openIfThere(() => bpf.openMap({ pin: join(root, folder, name) }));
      return from === undefined || to === undefined ? [] : [{ from, to, known: new Set() }];
    });
    return new CarryOver(pairs);
  }

  /** Bring over what has come since the last time. */
  async bring(): Promise<void> {
    for (const { from, to, known } of this.#pairs) {
      const { keySize } = from.info;
      for await (const { count, keys, values } of from.read()) {
        for (let index = 0; index < count; index += 1) {
          const key = keys.subarray(index * keySize, (index + 1) * keySize);
          const name = key.toString("latin1");
          if (known.has(name)) continue;
          known.add(name);
          if (to.lookup(key) === undefined) to.update(key, values.subarray(index * from.valueBytes, (index + 1) * from.valueBytes));
        }
      }
    }
  }

  /** Let go of the maps that were read. */
  close(): void {
    for (const { from } of this.#pairs) from.close();
  }
}

function openIfThere(open: () => BpfMap): BpfMap | undefined {
  try {
    return open();
  } catch (error) {
    if (ProxyError.is(error, "not_found")) return undefined;
    throw error;
  }
}
