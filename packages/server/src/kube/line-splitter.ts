const NEWLINE = 10;

/** Cuts a stream of chunks into lines; a line may span any number of chunks, characters may be cut in half. An unfinished last line is never given. */
export class LineSplitter {
  #tail: Buffer[] = [];

  /** Take a chunk; gives the lines it completes, empty ones left out. */
  push(chunk: Buffer): readonly string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const part = chunk.subarray(start, end);
      const line = this.#tail.length === 0 ? part : Buffer.concat([...this.#tail, part]);
      this.#tail = [];
      start = end + 1;
      if (line.length > 0) lines.push(line.toString("utf8"));
    }
    if (start < chunk.length) this.#tail.push(chunk.subarray(start));
    return lines;
  }
}
