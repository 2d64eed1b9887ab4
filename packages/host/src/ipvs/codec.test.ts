import { describe, expect, it } from "vitest";
import { parseFamilyId } from "../netlink/generic.ts";
import { parseRealServer, parseService, parseTimeouts, parseVersion } from "./answers.ts";
import type { VirtualServerKey } from "./model/model.ts";
import { operationRequest } from "./requests.ts";

/** Answers of Linux 6.1.176, recorded in user-mode Linux, without the statistics at their ends; connections and a forwarding put in by hand. */
const ANSWERS = {
  family: "01020000090002004950565300000000060001001c00000008000300010000000800040000000000080005000600000000000000",
  four: "010100005400010006000100020000000600020006000000140003000a600009000000000000000000000000060004000050000007000600736800000c00070013000000ffffffff080008006400000008000900ffff0000",
  six: "0101000054000100060001000a000000060002008400000014000300fd0000960000000000000000000000010600040001bb000008000600777272000c00070003000000ffffffff080008003c0000000800090080000000",
  mark: "01010000340001000600010002000000080005000700000007000600727200000c00070002000000ffffffff080008000000000008000900ffffffff",
  realFour:
    "0501000078000200140001000a010001000000000000000000000000060002001f9000000800030000000000080004000700000005000d000000000006000e000000000006000f00000000000800050000000000080006000000000008000700020000000800080005000000080009000000000006000b0002000000",
  realSix:
    "050100007800020014000100fd0000020000000000000000000000010600020020fb00000800030002000000080004000300000005000d000000000006000e000000000006000f00000000000800050000000000080006000000000008000700000000000800080000000000080009000000000006000b000a000000",
  timeouts: "0c01000008000400840300000800050078000000080006002c010000",
  version: "0e01000008000100010201000800020000100000",
} as const;

const WEB: VirtualServerKey = { family: "IPv4", protocol: "TCP", address: "10.96.0.1", port: 80 };
const VOICE: VirtualServerKey = { family: "IPv6", protocol: "SCTP", address: "fd00:96::1", port: 443 };

function bytes(name: keyof typeof ANSWERS): Buffer {
  return Buffer.from(ANSWERS[name], "hex");
}

describe("answers of the kernel", () => {
  it.each([
    [
      "four",
      {
        family: "IPv4",
        protocol: "TCP",
        address: "10.96.0.9",
        port: 80,
        scheduler: "sh",
        flags: 0x11,
        timeoutSeconds: 100,
        clientPrefixLength: 16,
      },
    ],
    ["six", { ...VOICE, scheduler: "wrr", flags: 1, timeoutSeconds: 60, clientPrefixLength: 128 }],
    ["mark", { family: "IPv4", firewallMark: 7 }],
  ] as const)("a virtual server: %s", (name, expected) => {
    expect(parseService(bytes(name))).toEqual(expected);
  });

  it("real servers of either family, with their connections, and none of the other", () => {
    const four = { address: "10.1.0.1", port: 8080, weight: 7, forward: "masquerade", activeConnections: 2, inactiveConnections: 5 };
    expect(parseRealServer(bytes("realFour"), "IPv4")).toEqual(four);
    const six = { address: "fd00:2::1", port: 8443, weight: 3, forward: "tunnel", activeConnections: 0, inactiveConnections: 0 };
    expect(parseRealServer(bytes("realSix"), "IPv6")).toEqual(six);
    expect(parseRealServer(bytes("realSix"), "IPv4")).toBeUndefined();
  });

  it("the family's id, timeouts and version", () => {
    expect(parseFamilyId(bytes("family"))).toBe(0x1c);
    expect(parseTimeouts(bytes("timeouts"))).toEqual({ tcp: 900, tcpFin: 120, udp: 300 });
    expect(parseVersion(bytes("version"))).toBe("1.2.1");
  });

  it("of what isn't there nothing is made up", () => {
    const empty = bytes("version");
    expect([parseService(empty), parseRealServer(empty, "IPv4"), parseTimeouts(empty), parseFamilyId(bytes("timeouts"))]).toEqual(
      Array.from({ length: 4 }, () => undefined),
    );
    expect(parseVersion(bytes("timeouts").subarray(0, 4))).toBeUndefined();
  });
});

it("of settings the kernel's own flag is never sent, and a mask of no bits is one", () => {
  const service = { ...WEB, scheduler: "mh", flags: 0x13, timeoutSeconds: 10_800, clientPrefixLength: 0 };
  const sent = operationRequest({ verb: "add-service", service }).toString("hex");
  expect(sent.slice(sent.indexOf("0c000700"))).toBe("0c00070011000000fdffffff08000800302a00000800090000000000");
});
