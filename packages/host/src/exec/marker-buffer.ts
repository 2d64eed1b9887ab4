/**
 * Text that arrives in pieces and leaves up to a marker.
 *
 * A piece is looked at once per marker, so that a long answer costs time in proportion to its length.
 * Units: `size` and `limit` are UTF-16 code units.
 */
export class MarkerBuffer {
  #pieces: string[] = [];
  #size = 0;
  /** The marker last looked for in vain, how many pieces that covered, and the end of their text. */
  #missed: { readonly marker: string; readonly pieces: number; readonly tail: string } | undefined;

  /** How much text is held. */
  get size(): number {
    return this.#size;
  }

  /** Add what has arrived. */
  push(text: string): void {
    if (text === "") return;
    this.#pieces.push(text);
    this.#size += text.length;
  }

  /** Take everything up to and including the first `marker`; undefined while it isn't there. */
  extract(marker: string): string | undefined {
    if (!this.holds(marker)) return undefined;
    const all = this.#pieces.join("");
    const end = all.indexOf(marker) + marker.length;
    const rest = all.slice(end);
    this.#pieces = rest === "" ? [] : [rest];
    this.#size = rest.length;
    this.#missed = undefined;
    return all.slice(0, end);
  }

  /** Take everything. */
  extractAll(): string {
    const all = this.#pieces.join("");
    this.#pieces = [];
    this.#size = 0;
    this.#missed = undefined;
    return all;
  }

  /** Tell whether `marker` is there. */
  holds(marker: string): boolean {
    const missed = this.#missed?.marker === marker ? this.#missed : { pieces: 0, tail: "" };
    const unseen = missed.tail + this.#pieces.slice(missed.pieces).join("");
    if (unseen.includes(marker)) return true;
    // A marker may begin in one piece and end in the next: keep what could be its beginning.
    const tail = marker.length > 1 ? unseen.slice(-(marker.length - 1)) : "";
    this.#missed = { marker, pieces: this.#pieces.length, tail };
    return false;
  }
}
