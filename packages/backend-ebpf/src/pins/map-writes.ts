import type { ProxyError } from "@turnout/core/backend";
import type { BpfMap } from "@turnout/host/bpf";
import type { Element } from "../bytes/elements.ts";

/** The map as it is written. */
export type WritableMap = Pick<BpfMap, "info" | "label" | "valueBytes" | "updateMany" | "deleteMany">;

/** Something to write that is several elements of one map. */
export interface Part<T> {
  readonly of: T;
  readonly elements: readonly Element[];
}

/**
 * Write parts in order, in as few calls as possible; gives what was refused, and why. Of that nothing is left in the map, so that it takes no room
 * of what comes after it, unless it `isInUse`.
 *
 * Edges: of a per-CPU map each CPU gets zeros.
 * @throws {ProxyError} when an element can't be deleted again.
 */
export async function writeParts<T>(
  map: WritableMap,
  parts: readonly Part<T>[],
  isInUse: (one: T) => boolean,
): Promise<ReadonlyMap<T, ProxyError>> {
  const all = parts.flatMap(({ elements }) => elements);
  const keys = Buffer.concat(all.map(({ key }) => key));
  const isOneValue = map.valueBytes === map.info.valueSize;
  const values = isOneValue ? Buffer.concat(all.map(({ value }) => value)) : Buffer.alloc(all.length * map.valueBytes);
  const refused = new Map<T, ProxyError>();
  let [part, begin] = [0, 0];
  while (begin < all.length) {
    const { done, refused: error } = await map.updateMany({
      count: all.length - begin,
      keys: keys.subarray(begin * map.info.keySize),
      values: values.subarray(begin * map.valueBytes),
    });
    if (error === undefined) break;
    let left = done;
    for (let size = sizeOf(parts[part]); left >= size; size = sizeOf(parts[part])) {
      left -= size;
      begin += size;
      part += 1;
    }
    const one = parts[part];
    if (one === undefined) break;
    refused.set(one.of, error);
    if (!isInUse(one.of)) await deleteElements(map, one.elements.slice(0, left));
    begin += one.elements.length;
    part += 1;
  }
  return refused;
}

/** Delete elements, the last first: what is left of a list when this is cut short begins at its beginning. */
export async function deleteElements(map: WritableMap, elements: readonly Element[]): Promise<void> {
  if (elements.length > 0) await map.deleteMany(Buffer.concat(elements.toReversed().map(({ key }) => key)));
}

function sizeOf(part: Part<unknown> | undefined): number {
  return part?.elements.length ?? Number.POSITIVE_INFINITY;
}
