import { ProxyError } from "@turnout/core";

const NEWLINE = 10;

/** Bytes of a line. etcd takes objects of 1.5 MB unless told otherwise; as JSON they are a few times as long. */
const LINE_BYTES_MAX = 64 * 1024 * 1024;

/** Cuts a stream of chunks into lines; a line may span any number of chunks, characters may be cut in half. An unfinished last line is never given. */
export class LineSplitter {
  readonly #bytesMax: number;
  #tail: Buffer[] = [];
  #tailBytes = 0;

  constructor(bytesMax: number = LINE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Take a chunk; gives the lines it completes, empty ones left out.
   * @throws {ProxyError} `limit_reached` for a line that does not end.
   */
  push(chunk: Buffer): readonly string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const part = chunk.subarray(start, end);
      const line = this.#tail.length === 0 ? part : Buffer.concat([...this.#tail, part]);
      this.#tail = [];
      this.#tailBytes = 0;
      start = end + 1;
      if (line.length > 0) lines.push(line.toString("utf8"));
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return lines;
  }

  #keep(part: Buffer): void {
    this.#tailBytes += part.length;
    if (this.#tailBytes > this.#bytesMax) throw new ProxyError("limit_reached", `a line has more than ${this.#bytesMax} bytes`);
    this.#tail.push(part);
  }
}
