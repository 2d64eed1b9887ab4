/** What a bench reads of a part of a change set; the rows are counted and passed over. */
export interface PartHead {
  readonly instance: string;
  readonly revision: number;
  /** As on the wire: 1 is IPv4, 2 is IPv6. */
  readonly family: number;
  readonly full: boolean;
  /** Another part follows. */
  readonly more: boolean;
  readonly set: number;
  /** Rows in packed form, which are not unpacked. */
  readonly packed: number;
  readonly deleted: number;
}

/** Fields of WatchResponse, ChangeSet and PackedRows, see node.proto. */
const CHANGE_SET = 2;
const [INSTANCE, REVISION, FAMILY, FULL, SET, DELETE, MORE, PACKED] = [1, 2, 3, 4, 6, 7, 10, 11];
const ROWS = 1;
const VARINT = 0;
const LENGTH_DELIMITED = 2;

/**
 * Read the head of a `turnout.node.v1.WatchResponse`; undefined when it is no change set. A thousand watchers in one process
 * would have it read ten million rows otherwise, and a machine of two cores would measure that.
 * @throws {RangeError} for bytes that are no message.
 */
export function readPart(bytes: Buffer): PartHead | undefined {
  const found = { instance: "", revision: 0, family: 0, full: false, more: false, set: 0, packed: 0, deleted: 0 };
  for (const [field, from, to] of fieldsOf(bytes, 0, bytes.length)) {
    if (field !== CHANGE_SET) return undefined;
    for (const [inner, start, end] of fieldsOf(bytes, from, to)) {
      if (inner === INSTANCE) found.instance = bytes.toString("utf8", start, end);
      else if (inner === REVISION) found.revision = readVarint(bytes, start).value;
      else if (inner === FAMILY) found.family = readVarint(bytes, start).value;
      else if (inner === FULL) found.full = readVarint(bytes, start).value === 1;
      else if (inner === MORE) found.more = readVarint(bytes, start).value === 1;
      else if (inner === SET) found.set++;
      else if (inner === DELETE) found.deleted++;
      else if (inner === PACKED) found.packed += packedRows(bytes, start, end);
    }
  }
  return found;
}

function packedRows(bytes: Buffer, from: number, to: number): number {
  for (const [field, start] of fieldsOf(bytes, from, to)) if (field === ROWS) return readVarint(bytes, start).value;
  return 0;
}

/** The fields of a message as number, begin and end of the value. */
function* fieldsOf(bytes: Buffer, from: number, to: number): Generator<readonly [number, number, number]> {
  for (let at = from; at < to;) {
    const tag = readVarint(bytes, at);
    const kind = tag.value % 8;
    if (kind !== VARINT && kind !== LENGTH_DELIMITED) throw new RangeError(`a field of kind ${kind} at ${at}`);
    const value = readVarint(bytes, tag.end);
    const [start, end] = kind === VARINT ? [tag.end, value.end] : [value.end, value.end + value.value];
    yield [Math.floor(tag.value / 8), start, end];
    at = end;
  }
}

/** Exact up to 2^53. */
function readVarint(bytes: Buffer, from: number): { readonly value: number; readonly end: number } {
  let value = 0;
  let scale = 1;
  for (let at = from; ; at++) {
    const byte = bytes.readUInt8(at);
    value += (byte % 128) * scale;
    if (byte < 128) return { value, end: at + 1 };
    scale *= 128;
  }
}
