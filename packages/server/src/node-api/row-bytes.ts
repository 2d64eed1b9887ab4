import { encodeRow, encodeSet, packRows } from "@turnout/client/protocol";
import type { ServicePort, SharedRows } from "@turnout/core";

/**
 * The bytes of rows, made once for all watchers of a row.
 *
 * Edges: nothing is kept for a node-state server with one watcher, which gets each row once; bytes go when their row goes.
 */
export class RowBytes {
  readonly #bytes = new WeakMap<ServicePort, Uint8Array>();
  readonly #packed = new WeakMap<SharedRows, Uint8Array>();
  #made = 0;

  /** How often a row was encoded. */
  get made(): number {
    return this.#made;
  }

  /** Get the bytes of a row, which many watchers may want when `isShared`. */
  of(row: ServicePort, isShared: boolean): Uint8Array {
    const known = this.#bytes.get(row);
    if (known !== undefined) return known;
    this.#made += 1;
    const bytes = encodeRow(row);
    if (isShared) this.#bytes.set(row, bytes);
    return bytes;
  }

  /** Make the bytes of rows that nobody else wants. */
  own(rows: readonly ServicePort[]): Uint8Array {
    this.#made += rows.length;
    return encodeSet(rows);
  }

  /** Get rows that many nodes share in packed form. */
  packed(rows: SharedRows): Uint8Array {
    const known = this.#packed.get(rows);
    if (known !== undefined) return known;
    this.#made += rows.length;
    const bytes = packRows(rows);
    this.#packed.set(rows, bytes);
    return bytes;
  }
}
