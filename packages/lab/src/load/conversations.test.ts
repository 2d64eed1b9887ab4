import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { inTurn, udp6Count, udpCount } from "./conversations.ts";
import { loadUdpSockets } from "./udp-socket.ts";

it("gives places in turn, for ever, and says when there are none", () => {
  const next = inTurn(["a", "b"]);
  expect([next(), next(), next()]).toEqual(["a", "b", "a"]);
  expect(inTurn([])).toThrow(RangeError);
});

it("reads the counters of UDP, in both families", () => {
  const snmp = "Tcp: A RcvbufErrors\nTcp: 1 9\nUdp: InDatagrams RcvbufErrors\nUdp: 5 7\nUdpLite: RcvbufErrors\nUdpLite: 8\n";
  expect(udpCount(snmp, "RcvbufErrors")).toBe(7);
  expect(() => udpCount(snmp, "Nothing")).toThrow("no counter Nothing");
  expect(udp6Count("Udp6InErrors    \t3\nUdp6RcvbufErrors                \t12\n")).toBe(12);
  expect(() => udp6Count("")).toThrow("Udp6RcvbufErrors");
});

it("finds them in this kernel's own words", () => {
  expect(udpCount(readFileSync("/proc/self/net/snmp", "utf8"), "RcvbufErrors")).toBeGreaterThanOrEqual(0);
  expect(udp6Count(readFileSync("/proc/self/net/snmp6", "utf8"))).toBeGreaterThanOrEqual(0);
});

it("writes addresses as the kernel reads them", async () => {
  const { addressOf } = await loadUdpSockets();
  expect(addressOf("10.1.2.3", 8081).subarray(0, 8).toString("hex")).toBe("02001f910a010203");
  expect(addressOf("fd00::1", 81).toString("hex")).toBe("0a00005100000000fd00000000000000000000000000000100000000");
  expect(() => addressOf("nobody", 1)).toThrow('"nobody" is no address');
});

it("sends datagrams that nobody reads, and each that finds the sink full is counted", async () => {
  const sockets = await loadUdpSockets();
  const sink = sockets.addressOf("127.0.0.1", 0);
  // The kernel chooses no port that could be asked for here: one that is free is found by binding.
  let port = 20_000;
  const open = (): ReturnType<typeof sockets.open> => {
    for (;;) {
      try {
        sink.writeUInt16BE(++port, 2);
        return sockets.open("IPv4", sink);
      } catch (error) {
        if (port > 20_100) throw error;
      }
    }
  };
  const full = open();
  const sender = sockets.open("IPv4");
  try {
    const before = udpCount(readFileSync("/proc/self/net/snmp", "utf8"), "RcvbufErrors");
    for (let count = 0; count < 2_000; count++) sender.send(sink);
    expect(udpCount(readFileSync("/proc/self/net/snmp", "utf8"), "RcvbufErrors") - before).toBeGreaterThan(1_000);
    expect(() => sockets.open("IPv4", sink)).toThrow("binding a UDP socket: EADDRINUSE");
  } finally {
    sender.close();
    full.close();
  }
});
