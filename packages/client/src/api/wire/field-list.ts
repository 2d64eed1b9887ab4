/** Bytes of an unsigned number as a varint. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
  return length;
}

/** Write a field's tag and the length of its value; returns where the value begins. */
export function writeTag(into: Buffer, start: number, tag: number, valueBytes: number): number {
  let at = into.writeUInt8(tag, start);
  for (let rest = valueBytes; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return into.writeUInt8(rest, at);
    at = into.writeUInt8((rest % 128) + 128, at);
  }
}

/** Fields of a message that are bytes already: they are copied as they are, and nothing is made for each of them. */
export class FieldList {
  /** Of each piece; 0 where that has its tags in it. */
  readonly #tags: number[] = [];
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;

  /** What all of it takes, tags included. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Add the value of a field; `tag` is the field's number × 8 + 2, below 128. */
  add(tag: number, value: Uint8Array): void {
    this.#tags.push(tag);
    this.#pieces.push(value);
    this.#bytes += 1 + varintLength(value.length) + value.length;
  }

  /** Add whole fields, tags included. */
  addFields(fields: Uint8Array): void {
    this.#tags.push(0);
    this.#pieces.push(fields);
    this.#bytes += fields.length;
  }

  /** Write all of it. */
  write(into: Buffer, start: number): void {
    let at = start;
    for (const [index, piece] of this.#pieces.entries()) {
      const tag = this.#tags[index] ?? 0;
      if (tag !== 0) at = writeTag(into, at, tag, piece.length);
      into.set(piece, at);
      at += piece.length;
    }
  }
}
