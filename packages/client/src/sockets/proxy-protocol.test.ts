import { expect, test } from "vitest";
import { proxyHeader } from "./proxy-protocol.ts";

const CLIENT = { ip: "203.0.113.1", port: 51_966 };
const ASKED = { ip: "10.96.0.20", port: 80 };

test("v1 is one line", () => {
  expect(new TextDecoder().decode(proxyHeader("v1", CLIENT, ASKED))).toBe("PROXY TCP4 203.0.113.1 10.96.0.20 51966 80\r\n");
  expect(new TextDecoder().decode(proxyHeader("v1", { ip: "fd00:203::1", port: 1 }, { ip: "fd00:96::1", port: 65_535 }))).toBe(
    "PROXY TCP6 fd00:203::1 fd00:96::1 1 65535\r\n",
  );
});

test("v2 is the octets of the specification", () => {
  const signature = "0d0a0d0a000d0a515549540a";
  expect(Buffer.from(proxyHeader("v2", CLIENT, ASKED)).toString("hex")).toBe(`${signature}2111000ccb0071010a600014cafe0050`);
  const six = Buffer.from(proxyHeader("v2", { ip: "fd00:203::1", port: 1 }, { ip: "fd00:96::1", port: 2 })).toString("hex");
  expect(six).toBe(`${signature}21210024fd000203000000000000000000000001fd00009600000000000000000000000100010002`);
});
