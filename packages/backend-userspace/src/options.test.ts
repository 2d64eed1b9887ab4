import type { Plain } from "@turnout/core";
import { expect, test } from "vitest";
import { userspaceModule } from "./module.ts";

test("what nobody says is as documented", () => {
  expect(userspaceModule.parseOptions({})).toEqual({
    ownAddresses: "auto",
    map: [],
    endpointMap: new Map(),
    balance: "random",
    drainSeconds: 0,
    dialSeconds: 5,
    tcpIdleSeconds: 0,
    udpIdleSeconds: 60,
    maxConnections: 10_000,
    maxConnectionsPerListener: 10_000,
    maxUdpSessions: 10_000,
    proxyProtocol: undefined,
    proxyProtocolFor: [],
  });
});

test("maps by name and by address, of one protocol or all", () => {
  const { map } = userspaceModule.parseOptions({
    map: ["shop/cart:http=127.0.0.1:8080", "shop/cart=[::1]:8081", "10.96.0.20:53/udp=127.0.0.1:8053", "[FD00::0:1]:80=127.0.0.1:8082"],
  });
  expect(map).toEqual([
    { target: "shop/cart:http", protocol: undefined, local: { ip: "127.0.0.1", port: 8080, family: "IPv4" } },
    { target: "shop/cart", protocol: undefined, local: { ip: "::1", port: 8081, family: "IPv6" } },
    { target: "10.96.0.20:53", protocol: "UDP", local: { ip: "127.0.0.1", port: 8053, family: "IPv4" } },
    { target: "[fd00::1]:80", protocol: undefined, local: { ip: "127.0.0.1", port: 8082, family: "IPv4" } },
  ]);
});

test("endpoints may be played elsewhere", () => {
  const { endpointMap } = userspaceModule.parseOptions({ "endpoint-map": ["10.1.1.5:8080=127.0.0.1:9001"] });
  expect(endpointMap.get("10.1.1.5:8080")).toMatchObject({ ip: "127.0.0.1", port: 9001 });
});

test.each<[Record<string, Plain>, RegExp]>([
  [{ color: "red" }, /unknown userspace option "color": known are own-addresses/],
  [{ "own-addresses": "yes" }, /true, false or auto/],
  [{ balance: "least" }, /random or round-robin/],
  [{ "dial-timeout": 0 }, /a number from 0.001/],
  [{ "dial-timeout": "5s" }, /a number/],
  [{ "drain-timeout": 9e9 }, /a number from 0 to 2147483/],
  [{ "max-connections": 1.5 }, /a whole number from 1/],
  [{ map: "shop/cart=127.0.0.1:80" }, /map must be a list/],
  [{ map: [5] }, /map must be a list, each of it a text/],
  [{ map: ["shop/cart"] }, /is no map/],
  [{ map: ["shop/cart=127.0.0.1"] }, /is no map/],
  [{ map: ["shop/cart=127.0.0.1:0"] }, /is no map/],
  [{ map: ["shop/cart=localhost:80"] }, /is no map/],
  [{ map: ["cart=127.0.0.1:80"] }, /"cart" names no service port/],
  [{ map: ["a/b=127.0.0.1:80", "c/d=127.0.0.1:80"] }, /two destinations at 127.0.0.1:80/],
  [{ "endpoint-map": ["10.1.1.5=127.0.0.1:9001"] }, /is no map/],
  [{ "proxy-protocol": "v2" }, /goes together with proxy-protocol-for/],
  [{ "proxy-protocol": "v3", "proxy-protocol-for": ["*"] }, /v1 or v2/],
])("%j is refused", (raw, expected) => {
  expect(() => userspaceModule.parseOptions(raw)).toThrow(expected);
});
