import type { Packet } from "@turnout/conformance";
import { expect, it } from "vitest";
import { flowsOf, rememberFlow } from "./fake-flows.ts";
import { createFakeLog } from "./fake-log.ts";
import { createFakeNetlink } from "./fake-netlink.ts";

const packet: Packet = { family: "IPv6", protocol: "UDP", source: "fd00::1", destination: "fd00:96::1", port: 53, link: "eth0" };

it("remembers each UDP flow once, and no other protocol's", () => {
  const netlink = createFakeNetlink();
  for (let times = 0; times < 2; times++) rememberFlow(netlink, packet, "[fd00:1::1]:5353");
  rememberFlow(netlink, { ...packet, protocol: "TCP" }, "[fd00:1::1]:5353");
  rememberFlow(netlink, packet, undefined);
  const flow = { family: "IPv6", source: "fd00::1", destination: "fd00:96::1", port: 53 };
  expect(flowsOf(netlink)).toEqual([
    { ...flow, endpoint: "[fd00:1::1]:5353" },
    { ...flow, endpoint: "[fd00:96::1]:53" },
  ]);
});

it("keeps the last thousand lines of a log", () => {
  const log = createFakeLog();
  for (let number = 0; number <= 1_000; number++) log.info("hello", { number });
  log.warn("end");
  expect(log.lines).toHaveLength(1_000);
  expect([log.lines[0], log.lines.at(-1)]).toEqual(['info hello {"number":2}', "warn end"]);
});
