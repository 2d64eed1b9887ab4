import type { FlowFilter } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { createFakeNetlink } from "./fake-netlink.ts";
import type { FakeFlow } from "./fake-netlink.ts";

const never = new AbortController().signal;
const lo = { ip: "127.0.0.1", prefixLength: 8, link: "lo" };

function flow(destination: string, replySource: string, protocol: FakeFlow["protocol"] = "UDP"): FakeFlow {
  return { protocol, source: destination.startsWith("[") ? "[fd00::1]:1000" : "10.0.0.1:1000", destination, replySource };
}

describe("createFakeNetlink", () => {
  it("deletes what the real one would", async () => {
    const kept = [
      flow("10.96.0.10:53", "10.1.0.5:53"),
      flow("10.96.0.10:53", "10.1.0.6:53", "TCP"),
      flow("10.96.0.10:53", "10.1.0.6:53", "SCTP"),
      flow("[fd96::10]:53", "[fd01::6]:53"),
      flow("198.51.100.1:30053", "10.1.0.6:53"),
    ];
    const netlink = createFakeNetlink({
      addresses: { IPv4: [lo] },
      flows: [...kept, flow("10.96.0.10:53", "10.1.0.6:53"), flow("127.0.0.1:30053", "10.1.0.6:53")],
    });
    const filters: readonly FlowFilter[] = [
      { protocol: "UDP", address: "10.96.0.10", port: 53, keep: ["10.1.0.5:53"] },
      { protocol: "UDP", address: "", port: 30053, keep: [] },
    ];
    expect(await netlink.deleteFlows("IPv4", filters, never)).toBe(2);
    expect(netlink.flows).toEqual(kept);
    expect(await netlink.deleteFlows("IPv6", [{ protocol: "UDP", address: "fd96:0::10", port: 53, keep: [] }], never)).toBe(1);
    await expect(netlink.deleteFlows("IPv6", filters, never)).rejects.toMatchObject({ code: "invalid_object" });
    await expect(netlink.deleteFlows("IPv4", filters, AbortSignal.abort())).rejects.toMatchObject({ code: "canceled" });
  });

  it("refuses flows that no kernel could hold", () => {
    expect(() => createFakeNetlink({ flows: [flow("10.96.0.10", "10.1.0.6:53")] })).toThrow("[invalid_object]");
    expect(() => createFakeNetlink({ flows: [flow("10.96.0.10:53", "[fd01::6]:53")] })).toThrow("[invalid_object]");
  });

  it("tells watchers of commits and addresses", async () => {
    const netlink = createFakeNetlink();
    const ending = new AbortController();
    const commits = netlink.watchNft(ending.signal)[Symbol.asyncIterator]();
    const changes = netlink.watchAddresses(ending.signal)[Symbol.asyncIterator]();
    const before = await netlink.nftGeneration();
    netlink.commitNft({ pid: 7, process: "nft", tables: ["ip turnout"] });
    expect(await netlink.nftGeneration()).not.toBe(before);
    const value = { kind: "commit", generation: before + 1, pid: 7, process: "nft", tables: ["ip turnout"] };
    expect(await commits.next()).toMatchObject({ done: false, value });
    netlink.setAddresses("IPv4", [lo]);
    netlink.setAddresses("IPv4", []);
    expect(await changes.next()).toEqual({ done: false, value: undefined });
    const next = changes.next();
    ending.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(await netlink.addresses("IPv4")).toEqual([]);
  });
});
