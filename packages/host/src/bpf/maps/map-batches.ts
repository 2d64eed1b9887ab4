import { errno } from "../../netlink/errno.ts";
import { elementError } from "../errors.ts";
import type { ProxyError } from "@turnout/core";
import type { MapInfo } from "../info.ts";
import type { Libbpf } from "../libbpf-calls.ts";

/** How many elements one call carries: some milliseconds of the kernel's time, and on a thread of its own. */
const BATCH = 4096;

/** A map as the batches need it. */
export interface BatchTarget {
  readonly lib: Libbpf;
  /** Make a call on another thread with the map's file descriptor. */
  readonly use: <T>(call: (fd: number) => Promise<T>) => Promise<T>;
  readonly info: MapInfo;
  /** Bytes of an element's value outside the kernel. */
  readonly valueBytes: number;
}

/** Elements one after another: the key at `index * keySize` of `keys`, its value at `index * valueBytes` of `values`. */
export interface Elements {
  readonly count: number;
  readonly keys: Buffer;
  readonly values: Buffer;
}

/** Memory for elements that are read, which one reading after another may share: what was read lasts until the next batch is. */
export class ElementSpace {
  #keys: Buffer = Buffer.alloc(0);
  #values: Buffer = Buffer.alloc(0);

  /** Room for so many bytes of each. */
  take(keyBytes: number, valueBytes: number): { readonly keys: Buffer; readonly values: Buffer } {
    if (this.#keys.length < keyBytes) this.#keys = Buffer.allocUnsafeSlow(keyBytes);
    if (this.#values.length < valueBytes) this.#values = Buffer.allocUnsafeSlow(valueBytes);
    return { keys: this.#keys, values: this.#values };
  }
}

/** How far a batch came: the first `done` elements are as wanted; the next is the one that was refused, if any. */
export interface BatchOutcome {
  readonly done: number;
  readonly refused: ProxyError | undefined;
}

/** Write elements in order, up to the first that is refused. */
export async function updateInBatches(
  { lib, use, info, valueBytes }: BatchTarget,
  { count, keys, values }: Elements,
): Promise<BatchOutcome> {
  for (let done = 0; done < count;) {
    const asked = Math.min(BATCH, count - done);
    const progress = Uint32Array.of(asked);
    const someKeys = keys.subarray(done * info.keySize, (done + asked) * info.keySize);
    const someValues = values.subarray(done * valueBytes, (done + asked) * valueBytes);
    const result = await use((fd) => lib.updateBatch(fd, someKeys, someValues, progress, undefined));
    if (result < 0) return { done: done + reached(progress, asked), refused: elementError(info, result) };
    done += asked;
  }
  return { done: count, refused: undefined };
}

/** Delete elements in order; one that isn't there is passed over. Gives how many there were. @throws {ProxyError} when one is refused. */
export async function deleteInBatches({ lib, use, info }: BatchTarget, keys: Buffer): Promise<number> {
  const count = keys.length / info.keySize;
  let deleted = 0;
  for (let at = 0; at < count;) {
    const asked = Math.min(BATCH, count - at);
    const progress = Uint32Array.of(asked);
    const some = keys.subarray(at * info.keySize, (at + asked) * info.keySize);
    const result = await use((fd) => lib.deleteBatch(fd, some, progress, undefined));
    if (result >= 0) {
      deleted += asked;
      at += asked;
      continue;
    }
    if (result !== -errno("ENOENT")) throw elementError(info, result);
    const before = reached(progress, asked);
    deleted += before;
    at += before + 1;
  }
  return deleted;
}

/** Read a map in batches, each in memory of its own, or all in the `room`. @throws {ProxyError} */
export async function* readInBatches(
  { lib, use, info, valueBytes }: BatchTarget,
  space?: ElementSpace,
): AsyncGenerator<Elements, void, undefined> {
  // A hash remembers a bucket's number, other maps a key.
  const place = Math.max(4, info.keySize);
  let from: Buffer | undefined;
  for (let capacity = Math.min(BATCH, Math.max(1, info.maxEntries)); ;) {
    const to = Buffer.allocUnsafeSlow(place);
    const { keys, values } = (space ?? new ElementSpace()).take(capacity * info.keySize, capacity * valueBytes);
    const progress = Uint32Array.of(capacity);
    const [after, found] = [from, progress];
    const result = await use((fd) => lib.lookupBatch(fd, after, to, keys, values, found, undefined));
    const isEnd = result === -errno("ENOENT");
    // One bucket of a hash has more elements than there is room for.
    if (result === -errno("ENOSPC")) {
      capacity *= 2;
      continue;
    }
    if (result < 0 && !isEnd) throw elementError(info, result);
    const count = progress[0] ?? 0;
    if (count > 0) yield { count, keys: keys.subarray(0, count * info.keySize), values: values.subarray(0, count * valueBytes) };
    if (isEnd) return;
    from = to;
  }
}

/** A call that was refused as a whole leaves the number alone. */
function reached(progress: Uint32Array, asked: number): number {
  const count = progress[0] ?? 0;
  return count === asked ? 0 : count;
}
