import type { Packet } from "@turnout/conformance";
import type { FlowFilter } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { createFakeNetlink } from "./fake-netlink.ts";

const never = new AbortController().signal;
const lo = { ip: "127.0.0.1", prefixLength: 8, link: "lo" };

describe("createFakeNetlink", () => {
  it("deletes what the real one would", async () => {
    const [dns, nodePort] = [
      { family: "IPv4" as const, source: "10.0.0.1", destination: "10.96.0.10", port: 53, endpoint: "10.1.0.6:53" },
      { family: "IPv4" as const, source: "10.0.0.1", destination: "127.0.0.1", port: 30053, endpoint: "10.1.0.6:53" },
    ];
    const kept = [
      { ...dns, endpoint: "10.1.0.5:53" },
      { family: "IPv6" as const, source: "fd00::1", destination: "fd96::10", port: 53, endpoint: "[fd01::6]:53" },
      { ...nodePort, destination: "198.51.100.1" },
    ];
    const netlink = createFakeNetlink({ addresses: { IPv4: [lo] }, flows: [...kept, dns, nodePort] });
    const filters: readonly FlowFilter[] = [
      { protocol: "UDP", address: "10.96.0.10", port: 53, keep: ["10.1.0.5:53"] },
      { protocol: "UDP", address: "", port: 30053, keep: [] },
    ];
    expect(await netlink.deleteFlows("IPv4", filters, never)).toBe(2);
    expect(netlink.flows).toEqual(kept);
    expect(await netlink.deleteFlows("IPv6", [{ protocol: "UDP", address: "fd96::10", port: 53, keep: [] }], never)).toBe(1);
    await expect(netlink.deleteFlows("IPv4", filters, AbortSignal.abort())).rejects.toMatchObject({ code: "canceled" });
  });

  it("remembers each UDP flow once, and no other protocol's", () => {
    const netlink = createFakeNetlink();
    const packet: Packet = { family: "IPv6", protocol: "UDP", source: "fd00::1", destination: "fd00:96::1", port: 53, link: "eth0" };
    for (let times = 0; times < 2; times++) netlink.rememberFlow(packet, "[fd00:1::1]:5353");
    netlink.rememberFlow({ ...packet, protocol: "TCP" }, "[fd00:1::1]:5353");
    netlink.rememberFlow(packet, undefined);
    const flow = { family: "IPv6", source: "fd00::1", destination: "fd00:96::1", port: 53 };
    expect(netlink.flows).toEqual([
      { ...flow, endpoint: "[fd00:1::1]:5353" },
      { ...flow, endpoint: "[fd00:96::1]:53" },
    ]);
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
