import { expect, it } from "vitest";
import { packetOf } from "./probe-packet.ts";
import { service } from "./short.ts";

const SERVICES = new Map([["web", service("web", { number: 1 })]]);
const PROBE = { from: "client1", to: "web clusterIP", sees: "refused" } as const;

it.each([
  [14, 0xffff_bfff],
  [0, 0xffff_fffe],
  [31, 0x7fff_ffff],
])("R-69 a marked packet bears every bit but the proxy's: bit %i", (bit, mark) => {
  expect(packetOf({ ...PROBE, isMarked: true }, "IPv4", "TCP", SERVICES, bit).mark).toBe(mark);
});

it("R-69 others bear none", () => {
  expect(packetOf(PROBE, "IPv4", "TCP", SERVICES)).not.toHaveProperty("mark");
});
