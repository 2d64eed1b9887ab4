import { FaultSwitches } from "@turnout/conformance";
import { expect, it } from "vitest";
import { IpsetTool } from "@turnout/host/ipset";
import { FakeIpset } from "./fake-ipset.ts";

const { signal } = new AbortController();
const packet = { protocol: "tcp", source: "10.1.0.5", sourcePort: 40_000, destination: "10.96.0.10", port: 80 };

function filled(): FakeIpset {
  const ipset = new FakeIpset({ faults: new FaultSwitches(), isNamed: (name) => name === "USED" });
  const lines = [
    "create PORTS bitmap:port range 0-65535",
    "add PORTS 80",
    "create IPS hash:ip",
    "add IPS 10.96.0.10",
    "create USED hash:ip,port",
    "add USED 10.96.0.10,tcp:80",
    "create NETS hash:ip,port,net",
    "add NETS 10.96.0.10,tcp:80,10.1.0.0/16",
    "create LOOP hash:ip,port,ip",
    "add LOOP 10.96.0.10,tcp:80,10.96.0.10",
  ];
  expect(ipset.run("restore", `${lines.join("\n")}\n`)).toMatchObject({ code: 0 });
  return ipset;
}

it.each([
  ["PORTS", ["dst"], true],
  ["PORTS", ["src"], false],
  ["IPS", ["dst"], true],
  ["IPS", ["src"], false],
  ["USED", ["dst", "dst"], true],
  ["USED", ["dst"], false],
  ["USED", ["src", "dst"], false],
  ["NETS", ["dst", "dst", "src"], true],
  ["NETS", ["dst", "dst", "dst"], false],
  ["LOOP", ["dst", "dst", "src"], false],
  ["LOOP", ["dst", "dst", "dst"], true],
  ["NOPE", ["dst"], false],
] as const)("a packet is in %s by %s: %s", (name, directions, expected) => {
  expect(filled().has(name, packet, directions)).toBe(expected);
});

it("a set that a rule names isn't destroyed, and an address that is refused spoils its own line alone", async () => {
  const faults = new FaultSwitches();
  const ipset = new FakeIpset({ faults, isNamed: (name) => name === "USED" });
  const tool = new IpsetTool(ipset.exec);
  faults.refuse(["10.9.0.1"]);
  const lines = ["create USED hash:ip", "add USED 10.9.0.1", "add USED 10.9.0.2", "destroy USED", "create P bitmap:port range 0-65535"];
  const codes = (await tool.restore(lines, signal)).map((error) => error?.code);
  expect(codes).toEqual([undefined, "tool_failed", undefined, "tool_failed", undefined]);
  expect([...(await tool.save(["USED"], signal)).values()].map(({ entries }) => entries)).toEqual([["10.9.0.2"]]);
  expect([ipset.familyOf("USED"), ipset.familyOf("P"), ipset.familyOf("NOPE")]).toEqual(["IPv4", "any", undefined]);
});

it.each([
  ["before", 0],
  ["during", 1],
  ["after", 2],
] as const)("a change fails %s it", async (when, entries) => {
  const faults = new FaultSwitches();
  const ipset = new FakeIpset({ faults, isNamed: () => false });
  ipset.run("restore", "create A hash:ip\n");
  faults.setFault({ when, afterChanges: 0 });
  await expect(new IpsetTool(ipset.exec).restore(["add A 1.1.1.1", "add A 1.1.1.2"], signal)).rejects.toThrow("[tool_failed]");
  expect(ipset.sets.get("A")?.entries.size).toBe(entries);
});
