import { expect, test } from "vitest";
import { namesLoopback, nodePortAddresses } from "./node-port-addresses.ts";

const HOST = ["127.0.0.1", "172.18.0.2", "10.0.0.7", "10.0.0.7"];

test.each([
  ["unset means all", [], "172.18.0.2", "all"],
  ["all", ["all", "10.0.0.0/8"], "172.18.0.2", "all"],
  ["a zero CIDR among others means all", ["10.0.0.0/8", "0.0.0.0/0"], "172.18.0.2", "all"],
  ["a CIDR, duplicates once", ["10.0.0.0/8"], "172.18.0.2", ["10.0.0.7"]],
  ["primary", ["primary"], "172.18.0.2", ["172.18.0.2"]],
  ["primary and localhost, sorted", ["primary", "localhost"], "172.18.0.2", ["127.0.0.1", "172.18.0.2"]],
  ["primary unknown leaves no CIDR, which means all", ["primary"], undefined, "all"],
  ["only the other family's CIDRs mean all", ["fd00::/8"], "172.18.0.2", "all"],
  ["a CIDR no address is in", ["192.0.2.0/24"], "172.18.0.2", []],
  ["a primary that is not on the host", ["primary"], "172.18.0.9", []],
])("R-37, R-38 IPv4: %s", (_name, wanted, primary, expected) => {
  expect(nodePortAddresses({ wanted, family: "IPv4", primary, hostAddresses: HOST })).toEqual(expected);
});

test.each([
  ["all", ["all"], "all"],
  ["localhost", ["localhost"], ["::1"]],
  ["primary", ["primary"], ["fd00::2"]],
])("R-37, R-38 IPv6: %s", (_name, wanted, expected) => {
  expect(nodePortAddresses({ wanted, family: "IPv6", primary: "fd00::2", hostAddresses: ["::1", "fd00::2"] })).toEqual(expected);
});

test.each<[readonly string[] | undefined, boolean, boolean]>([
  [undefined, false, false],
  [["primary"], false, false],
  [["all"], false, false],
  [["0.0.0.0/0", "::/0", "126.0.0.0/7"], false, false],
  [["localhost"], true, true],
  [["primary", "localhost"], true, true],
  [["all", "127.0.0.0/8"], true, false],
  [["127.0.0.1/32"], true, false],
  [["127.0.0.5/32"], false, false],
  [["::1/128"], false, true],
])("%j names loopback of IPv4: %s, of IPv6: %s", (wanted, v4, v6) => {
  const named = (more = {}): readonly boolean[] =>
    (["IPv4", "IPv6"] as const).map((family) => namesLoopback({ nodePortAddresses: wanted, ...more }, family));
  expect(named()).toEqual([v4, v6]);
  expect(named({ localhostNodePorts: false })).toEqual([false, false]);
});
