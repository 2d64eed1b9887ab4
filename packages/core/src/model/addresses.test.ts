import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  canonicalIP,
  cidrContains,
  clientNetwork,
  compareAddresses,
  disjointCIDRs,
  familyOf,
  hostPort,
  parseCIDR,
  parseIP,
  unusableReason,
} from "./addresses.ts";
import type { CIDR } from "./addresses.ts";

describe("R-09 addresses are read as leniently as the API server stored them", () => {
  it.each([
    ["plain IPv4", "10.1.2.3", "10.1.2.3"],
    ["leading zeros are decimal", "010.001.02.0003", "10.1.2.3"],
    ["leading zeros never octal", "0177.0.0.1", "177.0.0.1"],
    ["highest", "255.255.255.255", "255.255.255.255"],
    ["mapped IPv4 is IPv4", "::ffff:10.1.2.3", "10.1.2.3"],
    ["mapped IPv4 in hex is IPv4", "::FFFF:0a01:0203", "10.1.2.3"],
    ["compatible IPv4 stays IPv6", "::10.1.2.3", "::a01:203"],
    ["upper case and leading zeros", "2001:0DB8:0000:0000:0000:0000:0000:0001", "2001:db8::1"],
    ["longest run of zeros is shortened", "2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
    ["the first of equal runs is shortened", "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["a single zero group is not shortened", "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    [":: for a single group is written out", "2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    ["run at the end", "fd00:1:0:0:0:0:0:0", "fd00:1::"],
    ["all zeros", "0:0:0:0:0:0:0:0", "::"],
    ["embedded IPv4 at the end", "64:ff9b::192.0.2.1", "64:ff9b::c000:201"],
  ])("%s: %s", (_name, text, canonical) => {
    expect(canonicalIP(text)).toEqual({ text: canonical, family: familyOf(canonical) });
    expect(parseIP(text)?.text).toBe(canonical);
  });

  it.each([
    ["empty", ""],
    ["octet too large", "10.1.2.256"],
    ["three octets", "10.1.2"],
    ["five octets", "10.1.2.3.4"],
    ["a dot after", "10.1.2.3."],
    ["an octet that is empty", "10..2.3"],
    ["hex octet", "0x7f.0.0.1"],
    ["a number", "2130706433"],
    ["sign", "+1.2.3.4"],
    ["blank before", " 10.1.2.3"],
    ["newline after", "10.1.2.3\n"],
    ["zone", "fe80::1%eth0"],
    ["brackets", "[::1]"],
    ["port", "10.1.2.3:80"],
    ["prefix length", "10.1.2.3/32"],
    ["two ::", "1::2::3"],
    ["three colons", "1:::2"],
    ["seven groups", "1:2:3:4:5:6:7"],
    ["nine groups", "1:2:3:4:5:6:7:8:9"],
    [":: for no group", "1:2:3:4::5:6:7:8"],
    ["five hex digits", "12345::"],
    ["not hex", "2001:db8::g"],
    ["IPv4 before the end", "1.2.3.4::"],
    ["IPv4 before the end, then groups", "::1.2.3.4:5"],
    ["other digits", "١٠.1.2.3"],
    ["injection", "10.1.2.3; drop"],
  ])("refuses %s", (_name, text) => {
    expect(canonicalIP(text)).toBeUndefined();
    expect(parseIP(text)).toBeUndefined();
  });

  it("octets from 0 to 255, in any place", () => {
    const ends = (octet: string): readonly string[] => [`${octet}.0.10.255`, `0.${octet}.10.255`, `0.10.255.${octet}`];
    for (let octet = 0; octet <= 1100; octet++) {
      for (const [place, text] of ends(`${octet}`).entries()) {
        expect(canonicalIP(text)?.text).toBe(octet <= 255 ? text : undefined);
        expect(canonicalIP(ends(`0${octet}`)[place] ?? "")?.text).toBe(octet <= 255 ? text : undefined);
      }
    }
  });
});

describe("CIDRs", () => {
  it.each([
    ["host bits are cleared", "10.1.2.3/8", "10.0.0.0/8"],
    ["padding is ignored", "  10.0.0.0/8\t", "10.0.0.0/8"],
    ["leading zeros", "010.0.0.0/08", "10.0.0.0/8"],
    ["zero", "1.2.3.4/0", "0.0.0.0/0"],
    ["host", "192.0.2.7/32", "192.0.2.7/32"],
    ["top bit", "255.255.255.255/1", "128.0.0.0/1"],
    ["IPv6 host bits", "2001:db8:ffff::1/33", "2001:db8:8000::/33"],
    ["IPv6 zero", "::/0", "::/0"],
  ])("%s: %s", (_name, text, canonical) => expect(parseCIDR(text)?.text).toBe(canonical));

  it.each([
    "10.0.0.0",
    "10.0.0.0/",
    "10.0.0.0/33",
    "::/129",
    "10.0.0.0/-1",
    "10.0.0.0/8/8",
    "/8",
    "",
    "10.0.0.0/0x8",
    "::ffff:10.0.0.0/104",
  ])("refuses %j", (text) => expect(parseCIDR(text)).toBeUndefined());

  it.each([
    ["10.0.0.0/8", "10.255.255.255", true],
    ["10.0.0.0/8", "11.0.0.0", false],
    ["128.0.0.0/1", "255.0.0.1", true],
    ["0.0.0.0/0", "192.0.2.1", true],
    ["0.0.0.0/0", "2001:db8::1", false],
    ["::/0", "192.0.2.1", false],
    ["2001:db8::/32", "2001:db8:ffff::", true],
    ["192.0.2.1/32", "192.0.2.2", false],
  ])("%s contains %s: %s", (cidr, ip, expected) => {
    expect(cidrContains(parseCIDR(cidr) as CIDR, parseIP(ip) as never)).toBe(expected);
  });

  it.each([
    ["nested ones go", ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24"], ["10.0.0.0/8"]],
    ["twins go", ["10.0.0.0/8", "10.0.0.0/8"], ["10.0.0.0/8"]],
    ["neighbours stay", ["10.1.0.0/16", "10.0.0.0/16"], ["10.0.0.0/16", "10.1.0.0/16"]],
    ["same start, longer prefix", ["10.0.0.0/16", "10.0.0.0/8"], ["10.0.0.0/8"]],
    ["everything", ["192.0.2.0/24", "0.0.0.0/0"], ["0.0.0.0/0"]],
    ["none", [], []],
  ])("disjoint: %s", (_name, texts, expected) => {
    expect(disjointCIDRs(texts.flatMap((text) => parseCIDR(text) ?? [])).map(({ text }) => text)).toEqual(expected);
  });
});

describe("R-52 addresses that can be nobody's", () => {
  it.each([
    ["127.0.0.1", "loopback"],
    ["127.255.255.255", "loopback"],
    ["::1", "loopback"],
    ["169.254.169.254", "link-local"],
    ["fe80::1", "link-local"],
    ["febf:ffff::1", "link-local"],
    ["224.0.0.1", "multicast"],
    ["239.255.255.255", "multicast"],
    ["255.255.255.255", "broadcast"],
    ["ff02::1", "multicast"],
    ["0.0.0.0", "unspecified"],
    ["::", "unspecified"],
  ])("%s is %s", (ip, reason) => expect(unusableReason(ip)).toBe(reason));

  it.each([
    ["ordinary", "10.0.0.1"],
    ["next to link-local", "169.253.1.1"],
    ["next to loopback", "128.0.0.1"],
    ["last before multicast", "223.255.255.255"],
    // Class E is used for pods by some clouds, and the kernel routes it.
    ["class E", "240.0.0.1"],
    ["ULA", "fd00::1"],
    ["next to link-local", "fec0::1"],
    ["a short group that only begins like link-local", "fe8::1"],
    ["a short group that only begins like multicast", "ff::1"],
  ])("%s may be used: %s", (_name, ip) => expect(unusableReason(ip)).toBeUndefined());
});

describe("text of an address and port", () => {
  it("brackets IPv6 only", () => {
    expect([hostPort("10.0.0.1", 80), hostPort("fd00::1", 80)]).toEqual(["10.0.0.1:80", "[fd00::1]:80"]);
  });
});

const anyIP = fc.oneof(fc.ipV4(), fc.ipV6());
const anyCIDR = fc.tuple(fc.integer({ min: 8, max: 14 }), fc.nat(255), fc.integer({ min: 4, max: 32 }));

describe("properties", () => {
  it.each([
    ["IPv4", fc.ipV4()],
    ["IPv6", fc.ipV6()],
  ])("%s addresses compare as their texts with a port do", (_family, addresses) => {
    fc.assert(
      fc.property(addresses, addresses, fc.boolean(), (first, second, sharesStart) => {
        const a = canonicalIP(first)?.text ?? "";
        const b = canonicalIP(sharesStart ? `${first}0` : second)?.text ?? a;
        fc.pre(a.includes(":") === b.includes(":"));
        const [left, right] = [hostPort(a, 80), hostPort(b, 80)];
        expect(Math.sign(compareAddresses(a, b))).toBe(left === right ? 0 : left < right ? -1 : 1);
      }),
    );
  });

  it("canonicalising twice is canonicalising once, and keeps the value", () => {
    fc.assert(
      fc.property(anyIP, (text) => {
        const once = canonicalIP(text);
        expect(once).toBeDefined();
        expect(canonicalIP(once?.text ?? "")).toEqual(once);
        expect(parseIP(once?.text ?? "")?.value).toBe(parseIP(text)?.value);
      }),
    );
  });

  it("agrees with the platform's URL parser on IPv6", () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const theirs = new URL(`http://[${text}]/`).hostname.slice(1, -1);
        const ours = canonicalIP(text);
        expect(ours?.text).toBe(theirs.startsWith("::ffff:") ? canonicalIP(theirs)?.text : theirs);
      }),
    );
  });

  it("never throws on any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        for (const parse of [canonicalIP, parseIP, parseCIDR]) expect(() => parse(text)).not.toThrow();
      }),
    );
  });

  it("disjoint ranges cover the same addresses, and none overlaps another", () => {
    fc.assert(
      fc.property(
        fc.array(anyCIDR, { maxLength: 12 }),
        fc.array(fc.tuple(fc.integer({ min: 8, max: 14 }), fc.nat(255))),
        (ranges, probes) => {
          const cidrs = ranges.flatMap(([a, b, length]) => parseCIDR(`${a}.${b}.0.0/${length}`) ?? []);
          const disjoint = disjointCIDRs(cidrs);
          const edges = cidrs.flatMap(({ value }) => [value, value - 1n]).filter((value) => value >= 0n);
          const values = [...edges, ...probes.flatMap(([a, b]) => parseIP(`${a}.${b}.1.1`)?.value ?? [])];
          for (const value of values) {
            const holders = (list: readonly CIDR[]): number =>
              list.filter((cidr) => cidrContains(cidr, { text: "", family: "IPv4", value })).length;
            expect(holders(disjoint)).toBe(Math.min(1, holders(cidrs)));
          }
        },
      ),
    );
  });
});

it.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["fe80::1%eth0", "fe80::/64"],
  ["nonsense", "nonsense"],
])("a client at %s is counted as %s", (address, network) => {
  expect(clientNetwork(address)).toBe(network);
});
