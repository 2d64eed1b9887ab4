const GUID = /^\{?([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})\}?$/i;

/** The GUID with which a caller leaves the choice of one to HNS. */
export const NO_GUID = "00000000-0000-0000-0000-000000000000";

/**
 * Write a GUID as C has it: `{ u32, u16, u16, u8[8] }`. The first three groups of the text are numbers, little-endian; the rest are bytes in the order of
 * the text.
 * @throws {RangeError} when the text is no GUID.
 */
export function guidBytes(text: string): Buffer {
  const [, first, second, third, fourth, fifth] = GUID.exec(text) ?? [];
  if (first === undefined || second === undefined || third === undefined || fourth === undefined || fifth === undefined)
    throw new RangeError(`"${text}" is no GUID`);
  const bytes = Buffer.allocUnsafeSlow(16);
  bytes.writeUInt32LE(Number.parseInt(first, 16), 0);
  bytes.writeUInt16LE(Number.parseInt(second, 16), 4);
  bytes.writeUInt16LE(Number.parseInt(third, 16), 6);
  bytes.write(fourth + fifth, 8, "hex");
  return bytes;
}
