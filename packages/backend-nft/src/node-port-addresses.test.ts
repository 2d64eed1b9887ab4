import { describe, expect, it } from "vitest";
import { nodePortAddresses } from "./node-port-addresses.ts";

const NODE = ["172.18.0.1", "172.19.0.1"];
const HOST = ["127.0.0.1", "172.18.0.1", "10.1.0.1", "192.168.1.1"];

describe("nodePortAddresses", () => {
  it.each<[string, readonly string[] | undefined, readonly string[], "all" | readonly string[]]>([
    ["unset is primary", undefined, NODE, ["172.18.0.1"]],
    ["primary without a known address opens the family", ["primary"], [], "all"],
    ["a CIDR selects host addresses", ["192.168.0.0/16", "10.0.0.0/8"], NODE, ["10.1.0.1", "192.168.1.1"]],
    ["a family without a CIDR of its own is match-all", ["fd00::/8"], NODE, "all"],
    ["a zero CIDR matches everything", ["10.0.0.0/8", "0.0.0.0/0"], NODE, "all"],
    ["the keyword all", ["all"], NODE, "all"],
    ["loopback never answers", ["localhost"], NODE, []],
    ["an address the host doesn't have", ["172.19.0.0/16"], NODE, []],
  ])("%s", (_name, wanted, node, expected) => {
    expect(nodePortAddresses(wanted, "IPv4", node, HOST)).toEqual(expected);
  });
});
