import { expect, it } from "vitest";
import { decodeTcp, encodeTcp, TCP_FLAGS } from "./tcp-segment.ts";

const SEGMENT = {
  sourcePort: 8080,
  destinationPort: 40_000,
  sequence: 0xffff_fff0,
  acknowledged: 7,
  flags: TCP_FLAGS.PSH | TCP_FLAGS.ACK,
  data: Buffer.from("odd"),
};

it("what was written is read again, and numbers wrap around", () => {
  const bytes = encodeTcp({ ...SEGMENT, sequence: SEGMENT.sequence + 0x20 }, "10.1.0.2", "10.1.0.3");
  expect(decodeTcp(bytes)).toEqual({ ...SEGMENT, sequence: 0x10 });
});

it.each([
  ["10.1.0.2", "10.1.0.3", [0x0a01, 0x0002, 0x0a01, 0x0003]],
  ["fd00:1::2", "fd00:1::3", [0xfd00, 0x0001, 0x0002, 0xfd00, 0x0001, 0x0003]],
])("the checksum is that of RFC 9293: with the addresses, all words sum up to ones (%s)", (from, to, addresses) => {
  const bytes = Buffer.concat([encodeTcp(SEGMENT, from, to), Buffer.alloc(1)]);
  const pseudo = [...addresses, 6, bytes.length - 1];
  const words = Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readUInt16BE(index * 2));
  const sum = [...pseudo, ...words].reduce((one, other) => one + other, 0);
  expect((sum & 0xffff) + (sum >>> 16)).toBe(0xffff);
});

it("one that is cut short is refused", () => {
  expect(() => decodeTcp(Buffer.alloc(19))).toThrow("[invalid_object] TCP segment is cut short: 19 bytes");
});
