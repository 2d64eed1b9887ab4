import { describe, expect, it } from "vitest";
import { crc32c, decodeSctp, encodeSctp } from "./sctp-packet.ts";
import type { SctpPacket } from "./sctp-packet.ts";

const INIT: SctpPacket = {
  kind: "INIT",
  sourcePort: 40_000,
  destinationPort: 80,
  verificationTag: 0,
  initiateTag: 0xdeadbeef,
  cookie: Buffer.alloc(0),
};
const ACK: SctpPacket = {
  kind: "INIT-ACK",
  sourcePort: 80,
  destinationPort: 40_000,
  verificationTag: 0xdeadbeef,
  initiateTag: 7,
  cookie: Buffer.from("who?!"),
};

describe("crc32c", () => {
  it.each([
    ["123456789", 0xe3069283],
    ["", 0],
    ["\0".repeat(32), 0x8a9136aa], // RFC 3720 B.4
  ])("of %j", (text, expected) => {
    expect(crc32c(Buffer.from(text))).toBe(expected);
  });
});

describe("SCTP packets", () => {
  it("write an INIT as RFC 9260 has it", () => {
    const bytes = encodeSctp(INIT);
    expect(bytes.subarray(0, 8).toString("hex")).toBe("9c40005000000000");
    expect(bytes.subarray(12).toString("hex")).toBe("01000014deadbeef0001000000010001deadbeef");
  });

  it.each([INIT, ACK])("come back as they were: $kind", (packet) => {
    expect(decodeSctp(encodeSctp(packet))).toEqual(packet);
  });

  it("with a broken checksum are refused", () => {
    const bytes = encodeSctp(ACK);
    bytes.writeUInt16BE(81, 2);
    expect(() => decodeSctp(bytes)).toThrow("wrong checksum");
  });

  it("that are cut short are refused", () => {
    expect(() => decodeSctp(Buffer.alloc(10))).toThrow("cut short");
  });

  it("of another kind are left out", () => {
    const bytes = encodeSctp(INIT);
    bytes.writeUInt8(6, 12); // ABORT
    bytes.writeUInt32LE(0, 8);
    bytes.writeUInt32LE(crc32c(bytes), 8);
    expect(decodeSctp(bytes)).toBeUndefined();
  });
});
