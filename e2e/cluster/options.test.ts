import { expect, it } from "vitest";
import { readCommand } from "./options.ts";

it("plays all of sig-network with nft when nothing is said", () => {
  expect(readCommand([])).toEqual({
    action: "run",
    proxy: "nft",
    family: "IPv4",
    focus: "\\[sig-network\\]",
    procs: 10,
    nodes: 3,
    kubernetes: "1.37.2",
    isAgain: false,
    isKept: false,
    directory: undefined,
  });
});

it.each([
  ["the control", ["--backend", "kube-proxy"], { proxy: "kube-proxy-nftables" }],
  ["a mode of the control", ["--backend", "kube-proxy-iptables"], { proxy: "kube-proxy-iptables" }],
  ["up keeps", ["up"], { action: "up", isKept: true }],
  ["keep", ["--keep"], { action: "run", isKept: true }],
  ["move", ["move", "--backend", "iptables"], { action: "move", proxy: "iptables", isKept: false }],
  ["down", ["down"], { action: "down", isKept: false }],
  ["a part", ["--focus", "CLOSE_WAIT", "--procs", "2"], { focus: "CLOSE_WAIT", procs: 2 }],
])("reads %s", (_what, args, expected) => {
  expect(readCommand(args)).toMatchObject(expected);
});

it.each([
  [["--backend", "foo"], "--backend foo: choose from nft, iptables"],
  [["--family", "v6"], "--family v6: choose from IPv4, IPv6"],
  [["--procs", "0"], "--procs 0: a whole number from 1 to 100 is needed"],
  [["--nodes", "many"], "--nodes many: a whole number from 1 to 9 is needed"],
  [["--kubernetes", "v1.36"], "--kubernetes v1.36: a version such as 1.36.3"],
  [["--again", "--focus", "x"], "--again chooses the tests itself"],
  [["move", "--backend", "kube-proxy"], "move --backend kube-proxy: a backend to move to"],
  [["sideways"], "sideways: up, down, move, or no word"],
  [["up", "down"], "up down: up, down, move, or no word"],
])("refuses %j", (args, message) => {
  expect(() => readCommand(args)).toThrow(message);
});
