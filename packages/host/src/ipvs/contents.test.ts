import { describe, expect, it } from "vitest";
import { ContentChecksum } from "./contents.ts";
import { partOf } from "./model/parts.ts";
import { readSummary } from "./summary.ts";

const WEB = { address: "10.96.0.1", port: 80 };
const VOICE = { address: "fd00:96::1", port: 443 };

/** What Linux shows, here of two virtual servers of ours and one by firewall mark. */
function shown({ weight = 1, active = 0, realPort = "1F90" } = {}): string {
  return `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600001:0050 rr 
  -> 0A010001:${realPort}      Masq    ${String(weight).padEnd(6)} ${String(active).padEnd(10)} 0         
SCTP  [fd00:0096:0000:0000:0000:0000:0000:0001]:01BB wrr persistent 60 FFFFFFFF
  -> [fd00:0001:0000:0000:0000:0000:0000:0001]:20FB      Masq    1      0          0         
FWM  00000007 rr 
  -> 0A010001:0000      Route   1      0          0         
`;
}

/** Parts that aren't empty, with their digests, read in pieces of so many bytes. */
function partsOf(text: string, family: "IPv4" | "IPv6" = "IPv4", pieceBytes: number = 10_000): Readonly<Record<number, number>> {
  const digest = new ContentChecksum(family);
  const space = Buffer.alloc(20_000);
  let kept = 0;
  for (let at = 0; at < text.length; at += pieceBytes)
    kept = digest.take(space, kept + space.write(text.slice(at, at + pieceBytes), kept, "latin1"));
  expect(kept).toBe(0);
  return Object.fromEntries([...digest.parts.entries()].filter(([, sum]) => sum !== 0));
}

describe("what the kernel shows of IPVS, digested", () => {
  it("is in the parts of the family's virtual servers, however it is read", () => {
    expect(Object.keys(partsOf(shown()))).toEqual([String(partOf(WEB))]);
    expect(Object.keys(partsOf(shown(), "IPv6"))).toEqual([String(partOf(VOICE))]);
    for (const pieceBytes of [1, 7, 64]) expect(partsOf(shown(), "IPv4", pieceBytes)).toEqual(partsOf(shown()));
  });

  it("changes with a weight and a real server, and not with connections", () => {
    expect(partsOf(shown({ active: 12 }))).toEqual(partsOf(shown()));
    expect(partsOf(shown({ weight: 0 }))).not.toEqual(partsOf(shown()));
    expect(partsOf(shown({ realPort: "1F91" }))).not.toEqual(partsOf(shown()));
    expect(partsOf(shown({ weight: 0 }), "IPv6")).toEqual(partsOf(shown(), "IPv6"));
  });
});

describe("a summary of IPVS", () => {
  /** As Linux 6.1 answers for 10.96.0.1:80 with ten real servers; then room that stayed empty. */
  const answer = (scheduler: string): Int32Array => {
    const bytes = Buffer.alloc(8 + 2 * 104);
    bytes.writeUInt32LE(2);
    bytes.write("060000000a6000010050000000000000", 8, "hex");
    bytes.write(scheduler, 24, "latin1");
    bytes.write("0200000000000000ffffffff0a000000", 40, "hex");
    return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  };
  const checksumsOf = (scheduler: string): readonly (readonly [number, number])[] =>
    [...readSummary(answer(scheduler)).checksums.entries()].filter(([, sum]) => sum !== 0);

  it("counts what is there, and digests settings in the same parts", () => {
    expect(readSummary(answer("rr"))).toMatchObject({ virtualServers: 1, realServers: 10 });
    expect(checksumsOf("rr").map(([part]) => part)).toEqual([partOf(WEB)]);
    expect(checksumsOf("lc")).not.toEqual(checksumsOf("rr"));
  });
});
