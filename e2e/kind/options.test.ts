import { expect, it } from "vitest";
import { readKindCommand } from "./options.ts";

it("plays all of sig-network with nft in both families when nothing is said", () => {
  expect(readKindCommand([])).toMatchObject({ action: "run", proxy: "nft", ipFamily: "dual", procs: 10, isKept: false });
});

it.each([
  ["a control", ["--backend", "kube-proxy-iptables", "--ip-family", "ipv6"], { proxy: "kube-proxy-iptables", ipFamily: "ipv6" }],
  [
    "an own image",
    ["--image", "x.tar", "--node-image", "kindest/node:v1.35.4", "--kubernetes", "1.35.4"],
    { image: "x.tar", kubernetes: "1.35.4" },
  ],
  ["down", ["down"], { action: "down" }],
])("reads %s", (_what, args, expected) => {
  expect(readKindCommand(args)).toMatchObject(expected);
});

it.each([
  [["--backend", "foo"], "--backend foo: choose from nft, iptables"],
  [["--ip-family", "IPv4"], "--ip-family IPv4: choose from ipv4, ipv6, dual"],
  [["--kubernetes", "banana"], "--kubernetes banana: a version such as"],
  [["--procs", "x"], "--procs x: a whole number from 1 to 100 is needed"],
  [["up"], "up: down, or no word"],
  [["--frob"], "Unknown option '--frob'"],
])("refuses %j", (args, message) => {
  expect(() => readKindCommand(args)).toThrow(message);
});
