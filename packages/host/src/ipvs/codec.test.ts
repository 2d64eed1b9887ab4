import { describe, expect, it } from "vitest";
import { familyRequest, parseFamilyId } from "../netlink/generic.ts";
import { parseRealServer, parseService, parseTimeouts, parseVersion } from "./answers.ts";
import type { VirtualServerKey } from "./model/model.ts";
import { operationRequest, questionRequest, realServersRequest, servicesRequest, timeoutsRequest } from "./requests.ts";

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

/** Requests that the kernel took, and that had the effect which ipvs-kernel.test.ts looks at. */
describe("requests", () => {
  const keyFour = "06000100020000000600020006000000080003000a6000010600040000500000";
  const keySix = "060001000a000000060002008400000014000300fd0000960000000000000000000000010600040001bb0000";
  const settings = { scheduler: "mh", flags: 0x13, timeoutSeconds: 10_800 };

  it("that ask", () => {
    expect(familyRequest("IPVS").toString("hex")).toBe("03020000090002004950565300000000");
    expect(servicesRequest().toString("hex")).toBe("04010000");
    expect(realServersRequest(WEB).toString("hex")).toBe(`0801000024000180${keyFour}`);
    expect(realServersRequest(VOICE).toString("hex")).toBe(`0801000030000180${keySix}`);
    expect([questionRequest("timeouts"), questionRequest("version")].map((one) => one.toString("hex"))).toEqual(["0d010000", "0f010000"]);
    expect(timeoutsRequest({ tcp: 0, tcpFin: 30, udp: 10 }).toString("hex")).toBe(
      "0c0100000800040000000000080005001e000000080006000a000000",
    );
  });

  it("that change virtual servers; the kernel's own flag is never sent", () => {
    const tail = "070006006d6800000c00070011000000fdffffff08000800302a0000";
    const four = { ...WEB, ...settings, clientPrefixLength: 32 };
    expect(operationRequest({ verb: "add-service", service: four }).toString("hex")).toBe(
      `0101000048000180${keyFour}${tail}08000900ffffffff`,
    );
    const wide = { ...four, clientPrefixLength: 0 };
    expect(operationRequest({ verb: "edit-service", service: wide }).toString("hex")).toBe(
      `0201000048000180${keyFour}${tail}0800090000000000`,
    );
    const six = { ...VOICE, ...settings, clientPrefixLength: 128 };
    expect(operationRequest({ verb: "edit-service", service: six }).toString("hex")).toBe(
      `0201000054000180${keySix}${tail}0800090080000000`,
    );
    expect(operationRequest({ verb: "delete-service", service: four }).toString("hex")).toBe(`0301000024000180${keyFour}`);
  });

  it("that change real servers", () => {
    const server = { address: "10.1.0.1", port: 8080, weight: 3 };
    const key = "06000b0002000000080001000a010001060002001f900000";
    const tail = "0800030000000000080004000300000008000500000000000800060000000000";
    expect(operationRequest({ verb: "add-server", service: WEB, server }).toString("hex")).toBe(
      `0501000024000180${keyFour}3c000280${key}${tail}`,
    );
    expect(operationRequest({ verb: "edit-server", service: WEB, server }).toString("hex")).toBe(
      `0601000024000180${keyFour}3c000280${key}${tail}`,
    );
    expect(operationRequest({ verb: "delete-server", service: WEB, server }).toString("hex")).toBe(
      `0701000024000180${keyFour}1c000280${key}`,
    );
  });
});
