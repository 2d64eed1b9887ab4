import { describe, expect, it } from "vitest";
import {
  decodeAddressFlags,
  decodePodRange,
  decodeSourceRange,
  encodeAddressFlags,
  encodePodRange,
  encodeSourceRange,
  isInside,
  sortCIDRs,
} from "./ranges.ts";

const ID = "1112131415161718";

describe("ranges in the maps", () => {
  it.each([
    ["10.1.0.0/16", "70000000", "00000000000000000000ffff0a010000"],
    ["0.0.0.0/0", "60000000", "00000000000000000000ffff00000000"],
    ["198.51.100.6/32", "80000000", "00000000000000000000ffffc6336406"],
    ["fd00:1::/48", "30000000", "fd000001000000000000000000000000"],
    ["::/0", "00000000", "00000000000000000000000000000000"],
  ])("%s", (cidr, bits, address) => {
    expect(encodePodRange(cidr).toString("hex")).toBe(bits + address);
    expect(decodePodRange(encodePodRange(cidr))).toBe(cidr);
    const longer = Buffer.from(bits, "hex");
    longer.writeUInt32LE(longer.readUInt32LE() + 64);
    expect(encodeSourceRange(ID, cidr).toString("hex")).toBe(longer.toString("hex") + ID + address);
    expect(decodeSourceRange(encodeSourceRange(ID, cidr))).toEqual({ id: ID, cidr });
  });

  it("gives nothing for bits that no range has", () => {
    const [pods, sources] = [encodePodRange("10.1.0.0/16"), encodeSourceRange(ID, "10.1.0.0/16")];
    for (const bits of [90, 129, 0xffffffff]) {
      pods.writeUInt32LE(bits);
      expect(decodePodRange(pods)).toBeUndefined();
    }
    for (const bits of [0, 63, 193]) {
      sources.writeUInt32LE(bits);
      expect(decodeSourceRange(sources)).toBeUndefined();
    }
  });

  it("refuses what is none", () => expect(() => encodePodRange("10.1.0.0")).toThrow("[invalid_object] this is no CIDR: 10.1.0.0"));

  it("are sorted by their bytes, whatever order they come in", () => {
    const sorted = ["fd00::/16", "10.1.0.0/16", "198.51.100.6/32", "9.0.0.0/8"];
    expect(sortCIDRs(sorted.toReversed())).toEqual(sortCIDRs(sorted));
  });

  it.each([
    ["10.1.2.3", "10.1.0.0/16", true],
    ["10.1.2.0/24", "10.1.0.0/16", true],
    ["10.1.0.0/16", "10.1.0.0/16", true],
    ["10.0.0.0/8", "10.1.0.0/16", false],
    ["10.2.0.1", "10.1.0.0/16", false],
    ["fe80::1", "fe80::/10", true],
    ["10.1.2.3", "::/0", false],
  ])("%s in %s: %s", (text, range, is) => expect(isInside(text, range)).toBe(is));

  it("addresses of the node have flags", () => {
    const uses = [false, true].flatMap((hasListeners) => [false, true].map((hasNodePorts) => ({ hasNodePorts, hasListeners })));
    const flags = uses.map(encodeAddressFlags);
    expect(flags.map((bytes) => bytes.toString("hex"))).toEqual(["01000000", "03000000", "05000000", "07000000"]);
    expect(flags.map(decodeAddressFlags)).toEqual(uses);
    expect([0, 8, 9].map((number) => decodeAddressFlags(Buffer.of(number, 0, 0, 0)))).toEqual([undefined, undefined, undefined]);
  });
});
